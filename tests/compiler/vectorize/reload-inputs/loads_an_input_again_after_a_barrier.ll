; A simdgroup that waits keeps its live values in memory. A value of an input is there already, so that it is loaded
; again after the barrier. Uses before the barrier keep the first load.
; RUN: kiln-opt --passes=reload-inputs %s | FileCheck %s

declare i32 @__kiln_lane()
declare i64 @__kiln_wait(i32, i64, i64) convergent

; CHECK-LABEL: define void @after_the_barrier(
; CHECK: %a = load float, ptr %from, align 4, !invariant.load
; CHECK-NEXT: store float %a
; CHECK-NEXT: %all = call i64 @__kiln_wait{{.*}}
; CHECK-NEXT: %[[ADDRESS:.*]] = getelementptr float, ptr %x, i32 %lane
; CHECK-NEXT: %[[AGAIN:.*]] = load float, ptr %[[ADDRESS]], align 4, !invariant.load
; CHECK-NEXT: store float %[[AGAIN]]
; CHECK-NEXT: ret void
define void @after_the_barrier(ptr %x, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %x, i32 %lane
  %a = load float, ptr %from, !invariant.load !0
  store float %a, ptr %y
  %all = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  store float %a, ptr %y
  ret void
}

; The barrier is on one of the ways to the use.
; CHECK-LABEL: define void @in_another_block(
; CHECK: use:
; CHECK-NEXT: %[[ADDRESS:.*]] = getelementptr
; CHECK-NEXT: %[[AGAIN:.*]] = load float
; CHECK-NEXT: store float %[[AGAIN]]
define void @in_another_block(ptr %x, ptr %y, i1 %c) {
entry:
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %x, i32 %lane
  %a = load float, ptr %from, !invariant.load !0
  br i1 %c, label %wait, label %use
wait:
  %all = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  br label %use
use:
  store float %a, ptr %y
  ret void
}

!0 = !{}
