; Some threads would wait at one barrier while others wait at another, or in another iteration.
; RUN: kiln-opt --passes=barrier-uniformity %s | FileCheck %s

; CHECK-DAG: ; a_barrier_in_one_side_and_one_behind_it: barriers are divergent
; CHECK-DAG: ; a_barrier_in_each_side: barriers are divergent
; CHECK-DAG: ; a_loop_of_different_length: barriers are divergent

declare i32 @__kiln_lane()
declare i64 @__kiln_wait(i32, i64, i64) convergent

define void @a_barrier_in_one_side_and_one_behind_it() {
entry:
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %then, label %join
then:
  %one = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  br label %join
join:
  %all = call i64 @__kiln_wait(i32 1, i64 0, i64 0) convergent
  ret void
}

define void @a_barrier_in_each_side() {
entry:
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %then, label %else
then:
  %one = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  ret void
else:
  %other = call i64 @__kiln_wait(i32 1, i64 0, i64 0) convergent
  ret void
}

; Those that leave wait behind the loop while others wait in it.
define void @a_loop_of_different_length() {
entry:
  %lane = call i32 @__kiln_lane()
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  %one = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  %i.next = add i32 %i, 1
  %again = icmp ult i32 %i.next, %lane
  br i1 %again, label %loop, label %done
done:
  %all = call i64 @__kiln_wait(i32 1, i64 0, i64 0) convergent
  ret void
}
