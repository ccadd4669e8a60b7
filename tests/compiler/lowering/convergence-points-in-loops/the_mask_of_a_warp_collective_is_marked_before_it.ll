; Where a simdgroup runs as one vector it is to be known whether the lanes that a `_sync` function names are together,
; so the mask becomes a call of its own before the collective, and the operand stays as it is.
; RUN: kiln-opt --passes=convergence-points-in-loops %s | FileCheck %s

declare i64 @__kiln_warp_exchange(i32, i32, i32, ptr, i64, i64, i64, i32, i32) convergent
declare i64 @__kiln_exchange(i32, i32, i32, ptr, i64, i64, i64) convergent

; CHECK-LABEL: define i64 @shuffle(
; CHECK-NEXT: call void @__kiln_mask(i32 %mask)
; CHECK-NEXT: %[[R:.*]] = call i64 @__kiln_wait0(i32 0, i64 %value, i64 %lane)
; CHECK-NEXT: ret i64 %[[R]]
define i64 @shuffle(i64 %value, i64 %lane, i32 %mask) {
  %r = call i64 @__kiln_warp_exchange(i32 1, i32 1, i32 32, ptr null, i64 0, i64 %value, i64 %lane, i32 2, i32 %mask) convergent
  ret i64 %r
}

; Metal's collective has no mask.
; CHECK-LABEL: define i64 @simdgroup_shuffle(
; CHECK-NEXT: %[[R:.*]] = call i64 @__kiln_wait0(i32 0, i64 %value, i64 %lane)
; CHECK-NEXT: ret i64 %[[R]]
define i64 @simdgroup_shuffle(i64 %value, i64 %lane) {
  %r = call i64 @__kiln_exchange(i32 1, i32 1, i32 32, ptr null, i64 0, i64 %value, i64 %lane) convergent
  ret i64 %r
}
