; Combining is computed for all 32 lanes, even under a mask, so its function must not branch. A branch that simplifies
; to a select is none. The answer says so, and the function is unchanged.
; RUN: kiln-opt --passes=convergence-points-in-loops,lane-collectives --function=reduce %s | FileCheck %s
; RUN: kiln-opt --passes=convergence-points-in-loops,lane-collectives --function=maximum %s | FileCheck %s --check-prefix=SELECT

; CHECK: ; lane-collectives: a reduction whose function branches
; SELECT-NOT: ; lane-collectives:

declare i64 @__kiln_exchange(i32, i32, i32, ptr, i64, i64, i64) convergent
declare void @effect()

define internal i64 @branches(i64 %a, i64 %b) {
entry:
  %c = icmp ult i64 %a, %b
  br i1 %c, label %then, label %else
then:
  call void @effect()
  ret i64 %a
else:
  ret i64 %b
}

define internal i64 @largest(i64 %a, i64 %b) {
entry:
  %c = icmp ult i64 %a, %b
  br i1 %c, label %then, label %else
then:
  ret i64 %b
else:
  ret i64 %a
}

; CHECK-LABEL: define i64 @reduce(
; CHECK-NEXT: call i64 @__kiln_wait0(i32 0, i64 %value, i64 0)
define i64 @reduce(i64 %value) {
  %r = call i64 @__kiln_exchange(i32 1, i32 3, i32 32, ptr @branches, i64 0, i64 %value, i64 0) convergent
  ret i64 %r
}

; SELECT-LABEL: define i64 @maximum(
; SELECT-NOT: @__kiln_wait
; SELECT: call i64 @__kiln_lanes_first64(
define i64 @maximum(i64 %value) {
  %r = call i64 @__kiln_exchange(i32 1, i32 3, i32 32, ptr @largest, i64 0, i64 %value, i64 0) convergent
  ret i64 %r
}
