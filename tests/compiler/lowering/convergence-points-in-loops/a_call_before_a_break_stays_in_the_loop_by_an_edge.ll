; A collective before a `break` is a part of the loop in the source. An edge that is never taken, back to the header,
; makes it one in the control flow graph too, so that threads that break in different iterations execute it separately.
; RUN: kiln-opt --passes=convergence-points-in-loops %s | FileCheck %s

declare i32 @__kiln_loop_enter() convergent
declare void @__kiln_loop_merge(i32) convergent
declare i64 @__kiln_exchange(i32, i32, i32, ptr, i64, i64, i64) convergent

; CHECK-LABEL: define i64 @break(
; CHECK: loop:
; CHECK-DAG: phi i32 [ %{{.*}}, %latch ], [ 0, %entry ], [ 0, %break ]
; CHECK-DAG: %x = phi i64 [ 1, %entry ], [ %x.next, %latch ], [ 0, %break ]
; CHECK: break:
; CHECK-NEXT: %[[R:.*]] = call i64 @__kiln_wait1(i32 0, i64 %x, i64 0, i32 %
; CHECK-NEXT: %[[NEVER:.*]] = call i1 @__kiln_never()
; CHECK-NEXT: br i1 %[[NEVER]], label %loop, label %
define i64 @break(i1 %c) {
entry:
  %mark = call i32 @__kiln_loop_enter() convergent
  br label %loop
loop:
  %x = phi i64 [ 1, %entry ], [ %x.next, %latch ]
  br i1 %c, label %break, label %latch
break:
  %r = call i64 @__kiln_exchange(i32 2, i32 1, i32 32, ptr null, i64 0, i64 %x, i64 0) convergent
  br label %done
latch:
  %x.next = add i64 %x, 3
  br label %loop
done:
  call void @__kiln_loop_merge(i32 %mark) convergent
  ret i64 %r
}
