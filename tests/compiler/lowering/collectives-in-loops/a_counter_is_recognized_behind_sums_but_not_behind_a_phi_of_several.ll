; A counter plus a constant, or a phi with one value, is the counter of a loop that was unrolled in part or that has a
; phi at its exit. A phi of several iterations is none: the collective is one instruction for all of them, and stays.
; RUN: kiln-opt --passes=collectives-in-loops %s | FileCheck %s

declare void @__kiln_iteration1(i32) convergent

; CHECK-LABEL: define void @sum_and_single_phi(
; CHECK: call void @__kiln_iteration1(i32 %exit)
; CHECK-NEXT: %[[NEVER:.*]] = call i1 @__kiln_never()
; CHECK-NEXT: br i1 %[[NEVER]], label %loop, label %
define void @sum_and_single_phi(i1 %c) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  %second = add i32 %i, 1
  %i.next = add i32 %i, 2
  br i1 %c, label %loop, label %left
left:
  %exit = phi i32 [ %second, %loop ]
  call void @__kiln_iteration1(i32 %exit) convergent
  ret void
}

; CHECK-LABEL: define void @several_iterations(
; CHECK: call void @__kiln_iteration1(i32 %exit)
; CHECK-NEXT: ret void
define void @several_iterations(i1 %c, i1 %d) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %latch ]
  %second = add i32 %i, 1
  br i1 %c, label %left, label %latch
latch:
  %i.next = add i32 %i, 2
  br i1 %d, label %loop, label %left
left:
  %exit = phi i32 [ %i, %loop ], [ %second, %latch ]
  call void @__kiln_iteration1(i32 %exit) convergent
  ret void
}
