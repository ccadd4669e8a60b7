; A vote on the opposite comparison names the lanes of the other side, and the lanes that it leaves out are those of
; this one. A mask with parts from several paths has no lane of the other side if no part has one.
; RUN: kiln-opt --passes=warp-masks %s | FileCheck %s

; CHECK-DAG: ; opposite_vote: masks name the lanes that are together
; CHECK-DAG: ; opposite_vote_on_the_wrong_side: lanes that the mask of a _sync function names may wait at another call
; CHECK-DAG: ; another_comparison: lanes that the mask of a _sync function names may wait at another call
; CHECK-DAG: ; left_out: masks name the lanes that are together
; CHECK-DAG: ; left_out_on_the_wrong_side: lanes that the mask of a _sync function names may wait at another call
; CHECK-DAG: ; parts: masks name the lanes that are together
; CHECK-DAG: ; a_part_of_all: lanes that the mask of a _sync function names may wait at another call

declare i32 @__kiln_lane()
declare i32 @__kiln_lanes_vote1(i1) convergent
declare void @__kiln_mask(i32) convergent

define void @opposite_vote() {
entry:
  %lane = call i32 @__kiln_lane()
  %low = icmp ult i32 %lane, 16
  %high = icmp uge i32 %lane, 16
  %mask = call i32 @__kiln_lanes_vote1(i1 %high) convergent
  br i1 %low, label %then, label %else
then:
  ret void
else:
  call void @__kiln_mask(i32 %mask) convergent
  ret void
}

define void @opposite_vote_on_the_wrong_side() {
entry:
  %lane = call i32 @__kiln_lane()
  %low = icmp ult i32 %lane, 16
  %high = icmp uge i32 %lane, 16
  %mask = call i32 @__kiln_lanes_vote1(i1 %high) convergent
  br i1 %low, label %then, label %else
then:
  call void @__kiln_mask(i32 %mask) convergent
  ret void
else:
  call void @__kiln_mask(i32 -65536) convergent
  ret void
}

define void @another_comparison() {
entry:
  %lane = call i32 @__kiln_lane()
  %low = icmp ult i32 %lane, 16
  %other = icmp ule i32 %lane, 16
  %mask = call i32 @__kiln_lanes_vote1(i1 %other) convergent
  br i1 %low, label %then, label %else
then:
  call void @__kiln_mask(i32 %mask) convergent
  ret void
else:
  call void @__kiln_mask(i32 -65536) convergent
  ret void
}

define void @left_out() {
entry:
  %lane = call i32 @__kiln_lane()
  %low = icmp ult i32 %lane, 16
  %vote = call i32 @__kiln_lanes_vote1(i1 %low) convergent
  %mask = xor i32 %vote, -1
  br i1 %low, label %then, label %else
then:
  call void @__kiln_mask(i32 65535) convergent
  ret void
else:
  call void @__kiln_mask(i32 %mask) convergent
  ret void
}

define void @left_out_on_the_wrong_side() {
entry:
  %lane = call i32 @__kiln_lane()
  %low = icmp ult i32 %lane, 16
  %vote = call i32 @__kiln_lanes_vote1(i1 %low) convergent
  %mask = xor i32 %vote, -1
  br i1 %low, label %then, label %else
then:
  call void @__kiln_mask(i32 %mask) convergent
  ret void
else:
  call void @__kiln_mask(i32 -65536) convergent
  ret void
}

define void @parts(i1 %known) {
entry:
  %lane = call i32 @__kiln_lane()
  %low = icmp ult i32 %lane, 16
  %vote = call i32 @__kiln_lanes_vote1(i1 %low) convergent
  br i1 %known, label %some, label %chosen
some:
  %part = and i32 %vote, 255
  br label %chosen
chosen:
  %mask = phi i32 [ %part, %some ], [ %vote, %entry ]
  br i1 %low, label %then, label %else
then:
  call void @__kiln_mask(i32 %mask) convergent
  ret void
else:
  call void @__kiln_mask(i32 -65536) convergent
  ret void
}

define void @a_part_of_all(i1 %known) {
entry:
  %lane = call i32 @__kiln_lane()
  %low = icmp ult i32 %lane, 16
  %vote = call i32 @__kiln_lanes_vote1(i1 %low) convergent
  br i1 %known, label %some, label %chosen
some:
  %part = and i32 %vote, 255
  br label %chosen
chosen:
  %mask = phi i32 [ %part, %some ], [ -1, %entry ]
  br i1 %low, label %then, label %else
then:
  call void @__kiln_mask(i32 %mask) convergent
  ret void
else:
  call void @__kiln_mask(i32 -65536) convergent
  ret void
}
