; A condition that seemed to lead to the next iteration has become constant, so that a collective has left the loop
; whose counter it has. An edge that is never taken, back to the header, makes it a part of the loop again.
; RUN: kiln-opt --passes=collectives-in-loops %s | FileCheck %s

declare void @__kiln_iteration1(i32) convergent
declare i64 @__kiln_wait2(i32, i64, i64, i32, i32) convergent

; CHECK-LABEL: define void @mark_behind_the_loop(
; CHECK: loop:
; CHECK-NEXT: %i = phi i32 [ 0, %entry ], [ %i.next, %loop ], [ 0, %left ]
; CHECK: left:
; CHECK-NEXT: call void @__kiln_iteration1(i32 %i)
; CHECK-NEXT: %[[NEVER:.*]] = call i1 @__kiln_never()
; CHECK-NEXT: br i1 %[[NEVER]], label %loop, label %
define void @mark_behind_the_loop(i1 %c) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  %i.next = add i32 %i, 1
  br i1 %c, label %loop, label %left
left:
  call void @__kiln_iteration1(i32 %i) convergent
  ret void
}

; It has left both loops, of which the inner one has left the outer itself.
; CHECK-LABEL: define void @left_two_loops(
; CHECK: call i64 @__kiln_wait2(i32 0, i64 0, i64 0, i32 %i, i32 %j)
; CHECK-DAG: br i1 %{{.*}}, label %inner, label %
; CHECK-DAG: br i1 %{{.*}}, label %outer, label %
define void @left_two_loops(i1 %c, i1 %d) {
entry:
  br label %outer
outer:
  %i = phi i32 [ 0, %entry ], [ %i.next, %outer ]
  %i.next = add i32 %i, 1
  br i1 %c, label %outer, label %before
before:
  br label %inner
inner:
  %j = phi i32 [ 0, %before ], [ %j.next, %stay ]
  %j.next = add i32 %j, 1
  br i1 %d, label %left, label %stay
stay:
  br label %inner
left:
  %all = call i64 @__kiln_wait2(i32 0, i64 0, i64 0, i32 %i, i32 %j) convergent
  ret void
}
