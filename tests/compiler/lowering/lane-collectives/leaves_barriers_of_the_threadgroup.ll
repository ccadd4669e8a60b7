; A barrier waits for other simdgroups and stays, with its number and counters. A collective in a loop leaves a mark of
; the iteration, by which a later pass keeps it there.
; RUN: kiln-opt --passes=convergence-points-in-loops,lane-collectives %s | FileCheck %s

declare void @__kiln_threadgroup_barrier(i32) convergent
declare i64 @__kiln_exchange(i32, i32, i32, ptr, i64, i64, i64) convergent

; CHECK-LABEL: define void @loop(
; CHECK: loop:
; CHECK: %[[I:.*]] = phi i32 [ %{{.*}}, %loop ], [ 0, %entry ]
; CHECK: call i64 @__kiln_wait1(i32 0, i64 0, i64 0, i32 %[[I]])
; CHECK-NEXT: %[[B:.*]] = icmp ne i64 %{{.*}}, 0
; CHECK-NEXT: %[[VOTE:.*]] = call i32 @__kiln_lanes_vote1(i1 %[[B]])
; CHECK-NEXT: %{{.*}} = zext i32 %[[VOTE]] to i64
; CHECK-NEXT: call void @__kiln_iteration1(i32 %[[I]])
define void @loop(i64 %value) {
entry:
  br label %loop
loop:
  call void @__kiln_threadgroup_barrier(i32 1) convergent
  %r = call i64 @__kiln_exchange(i32 1, i32 2, i32 32, ptr null, i64 0, i64 %value, i64 0) convergent
  %again = icmp eq i64 %r, 0
  br i1 %again, label %loop, label %done
done:
  ret void
}
