; A call before a `break` has left the loop in the control flow graph, but not in the source: the loop's merge mark
; comes after it. So it has the loop's counter, and a call behind the mark has not. The marks are removed.
; RUN: kiln-opt --passes=convergence-points %s | FileCheck %s

; CHECK-NOT: call {{.*}}@__kiln_loop_

declare i32 @__kiln_loop_enter() convergent
declare void @__kiln_loop_merge(i32) convergent
declare void @__kiln_threadgroup_barrier(i32) convergent

; CHECK-LABEL: define void @break(
; CHECK: loop:
; CHECK-NEXT: %[[I:.*]] = phi i32
; CHECK: break:
; CHECK-NEXT: call i64 @__kiln_wait1(i32 0, i64 0, i64 0, i32 %[[I]])
; CHECK: done:
; CHECK-NEXT: call i64 @__kiln_wait0(i32 1, i64 0, i64 0)
; CHECK-NEXT: ret void
define void @break(i1 %c, i1 %d) {
entry:
  %mark = call i32 @__kiln_loop_enter() convergent
  br label %loop
loop:
  br i1 %c, label %break, label %latch
break:
  call void @__kiln_threadgroup_barrier(i32 1) convergent
  br label %done
latch:
  br i1 %d, label %loop, label %done
done:
  call void @__kiln_loop_merge(i32 %mark) convergent
  call void @__kiln_threadgroup_barrier(i32 2) convergent
  ret void
}

; CHECK-NOT: call {{.*}}@__kiln_loop_
