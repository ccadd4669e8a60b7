; A `_sync` function names the lanes that it waits for. Where waiting threads are counted, the mask is the upper half of
; the operand.
; RUN: kiln-opt --passes=convergence-points %s | FileCheck %s

declare i64 @__kiln_warp_exchange(i32, i32, i32, ptr, i64, i64, i64, i32, i32) convergent

; CHECK-LABEL: define i64 @shuffle(
; CHECK: %[[WIDE:.*]] = zext i32 %mask to i64
; CHECK-NEXT: %[[UPPER:.*]] = shl i64 %[[WIDE]], 32
; CHECK-NEXT: %[[OPERAND:.*]] = or i64 %lane, %[[UPPER]]
; CHECK-NEXT: %[[R:.*]] = call i64 @__kiln_wait0(i32 0, i64 %value, i64 %[[OPERAND]])
; CHECK-NEXT: ret i64 %[[R]]
define i64 @shuffle(i64 %value, i64 %lane, i32 %mask) {
  %r = call i64 @__kiln_warp_exchange(i32 1, i32 1, i32 32, ptr null, i64 0, i64 %value, i64 %lane, i32 2, i32 %mask) convergent
  ret i64 %r
}
