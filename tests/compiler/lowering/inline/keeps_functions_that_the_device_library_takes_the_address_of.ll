; The functions by which collectives combine two lanes' values are passed by their address, and stay functions. What
; they call is inlined into them.
; RUN: kiln-opt --passes=inline --function=body %s | FileCheck %s

declare i64 @__kiln_exchange(i32, i32, i32, ptr, i64, i64, i64) convergent

define i64 @sum(i64 %a, i64 %b) {
  %r = add i64 %a, %b
  ret i64 %r
}

; CHECK: define internal i64 @_ZN6__kiln7combineEll(
; CHECK-NEXT: %[[R:.*]] = add i64 %a, %b
; CHECK-NEXT: ret i64 %[[R]]
define i64 @_ZN6__kiln7combineEll(i64 %a, i64 %b) {
  %r = call i64 @sum(i64 %a, i64 %b)
  ret i64 %r
}

; CHECK: define i64 @body(
; CHECK-NEXT: call i64 @__kiln_exchange(i32 1, i32 3, i32 32, ptr @_ZN6__kiln7combineEll,
define i64 @body(i64 %x) {
  %r = call i64 @__kiln_exchange(i32 1, i32 3, i32 32, ptr @_ZN6__kiln7combineEll, i64 0, i64 %x, i64 0) convergent
  ret i64 %r
}

; CHECK-NOT: define {{.*}}@sum
