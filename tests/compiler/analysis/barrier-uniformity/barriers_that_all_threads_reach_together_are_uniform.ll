; All threads reach the barrier together: outside of branches, behind the join of a divergent branch, in a side or a
; loop whose condition is uniform.
; RUN: kiln-opt --passes=barrier-uniformity %s | FileCheck %s

; CHECK-DAG: ; straight_line: barriers are uniform
; CHECK-DAG: ; behind_a_join: barriers are uniform
; CHECK-DAG: ; uniform_branch: barriers are uniform
; CHECK-DAG: ; uniform_loop: barriers are uniform
; CHECK-DAG: ; no_barrier: barriers are uniform

declare i32 @__kiln_lane()
declare i64 @__kiln_wait(i32, i64, i64) convergent

define void @straight_line() {
  %all = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  ret void
}

define void @behind_a_join(ptr %y) {
entry:
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %then, label %join
then:
  store i32 %lane, ptr %y
  br label %join
join:
  %all = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  ret void
}

define void @uniform_branch(i1 %c) {
entry:
  br i1 %c, label %then, label %join
then:
  %all = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  br label %join
join:
  ret void
}

define void @uniform_loop(i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  %all = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  %i.next = add i32 %i, 1
  %again = icmp ult i32 %i.next, %n
  br i1 %again, label %loop, label %done
done:
  ret void
}

define void @no_barrier(ptr %y) {
entry:
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %then, label %join
then:
  store i32 %lane, ptr %y
  br label %join
join:
  ret void
}
