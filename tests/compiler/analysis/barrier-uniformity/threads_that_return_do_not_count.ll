; A barrier does not wait for threads that have returned. So the threads that are left may pass a barrier alone, and
; what is uniform among them counts: after a loop that some left by a return, the rest leave it together.
; RUN: kiln-opt --passes=barrier-uniformity %s | FileCheck %s

; CHECK-DAG: ; some_return: barriers are uniform
; CHECK-DAG: ; some_return_out_of_a_loop: barriers are uniform
; CHECK-DAG: ; some_break_out_of_a_loop: barriers are divergent

declare i32 @__kiln_lane()
declare i64 @__kiln_wait(i32, i64, i64) convergent

define void @some_return() {
entry:
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %leave, label %wait
leave:
  ret void
wait:
  %all = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  ret void
}

define void @some_return_out_of_a_loop(i32 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %next ]
  %returns = icmp eq i32 %i, %lane
  br i1 %returns, label %leave, label %next
next:
  %i.next = add i32 %i, 1
  %again = icmp ult i32 %i.next, %n
  br i1 %again, label %loop, label %behind
behind:
  %odd = trunc i32 %i.next to i1
  br i1 %odd, label %wait, label %other
wait:
  %one = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  br label %other
other:
  %all = call i64 @__kiln_wait(i32 1, i64 0, i64 0) convergent
  ret void
leave:
  ret void
}

; The same, but those that leave early go on behind the loop, with another count.
define void @some_break_out_of_a_loop(i32 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %next ]
  %breaks = icmp eq i32 %i, %lane
  br i1 %breaks, label %behind, label %next
next:
  %i.next = add i32 %i, 1
  %again = icmp ult i32 %i.next, %n
  br i1 %again, label %loop, label %behind
behind:
  %count = phi i32 [ %i, %loop ], [ %i.next, %next ]
  %odd = trunc i32 %count to i1
  br i1 %odd, label %wait, label %other
wait:
  %one = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  br label %other
other:
  %all = call i64 @__kiln_wait(i32 1, i64 0, i64 0) convergent
  ret void
}
