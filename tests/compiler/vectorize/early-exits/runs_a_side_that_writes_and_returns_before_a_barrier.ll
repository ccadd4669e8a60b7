; Some threads write and return, the others wait at a barrier and may read what was written. An edge that is never taken
; leads from the end of the returning side to the other side, so that structuring puts the returning side first.
; RUN: kiln-opt --passes=early-exits %s | FileCheck %s

declare i32 @__kiln_lane()
declare i64 @__kiln_wait(i32, i64, i64) convergent

; CHECK-LABEL: define void @returns(
; CHECK: br i1 %odd, label %leave, label %[[CONTINUE:.*]]
; CHECK: leave:
; CHECK-NEXT: store float 1.0
; CHECK-NEXT: %[[NEVER:.*]] = call i1 @__kiln_never()
; CHECK-NEXT: br i1 %[[NEVER]], label %[[CONTINUE]], label %[[END:.*]]
; CHECK: [[END]]:
; CHECK-NEXT: ret void
; CHECK: [[CONTINUE]]:
; CHECK-NEXT: br label %wait
; CHECK: wait:
; CHECK-NEXT: %all = call i64 @__kiln_wait{{.*}}
; CHECK-NEXT: ret void
define void @returns(ptr %arguments) {
entry:
  %y = load ptr, ptr %arguments, !invariant.load !0
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %leave, label %wait
leave:
  store float 1.0, ptr %y
  ret void
wait:
  %all = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  ret void
}

; The side need not be the branch's first.
; CHECK-LABEL: define void @returns_at_the_second_edge(
; CHECK: br i1 %odd, label %[[CONTINUE:.*]], label %leave
; CHECK: leave:
; CHECK-NEXT: store float 1.0
; CHECK-NEXT: %[[NEVER:.*]] = call i1 @__kiln_never()
; CHECK-NEXT: br i1 %[[NEVER]], label %[[CONTINUE]], label
define void @returns_at_the_second_edge(ptr %arguments) {
entry:
  %y = load ptr, ptr %arguments, !invariant.load !0
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %wait, label %leave
leave:
  store float 1.0, ptr %y
  ret void
wait:
  %all = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  ret void
}

!0 = !{}
