; A mask that lanes have voted on after they diverged, or by the very predicate of the branch, has only lanes of this
; side. On the other side, the same mask names lanes that are not there.
; RUN: kiln-opt --passes=warp-masks %s | FileCheck %s

; CHECK-DAG: ; voted_in_the_side: masks name the lanes that are together
; CHECK-DAG: ; voted_by_the_condition: masks name the lanes that are together
; CHECK-DAG: ; voted_against_it: lanes that the mask of a _sync function names may wait at another call

declare i32 @__kiln_lane()
declare i32 @__kiln_lanes_vote1(i1) convergent
declare void @__kiln_mask(i32) convergent

define void @voted_in_the_side() {
entry:
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %then, label %else
then:
  %one = call i32 @__kiln_lanes_vote1(i1 true) convergent
  call void @__kiln_mask(i32 %one) convergent
  ret void
else:
  %other = call i32 @__kiln_lanes_vote1(i1 true) convergent
  call void @__kiln_mask(i32 %other) convergent
  ret void
}

define void @voted_by_the_condition() {
entry:
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  %mask = call i32 @__kiln_lanes_vote1(i1 %odd) convergent
  br i1 %odd, label %then, label %join
then:
  call void @__kiln_mask(i32 %mask) convergent
  br label %join
join:
  call void @__kiln_mask(i32 -1) convergent
  ret void
}

define void @voted_against_it() {
entry:
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  %even = xor i1 %odd, true
  %mask = call i32 @__kiln_lanes_vote1(i1 %even) convergent
  br i1 %odd, label %then, label %join
then:
  call void @__kiln_mask(i32 %mask) convergent
  br label %join
join:
  call void @__kiln_mask(i32 -1) convergent
  ret void
}
