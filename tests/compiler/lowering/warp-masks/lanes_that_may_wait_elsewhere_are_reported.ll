; A lane of the mask may take the other side of a divergent branch and wait there: at another call, or at the same call
; in another iteration. A vector would run one side after the other, so that the answer is no.
; RUN: kiln-opt --passes=warp-masks %s | FileCheck %s

; CHECK-DAG: ; both_sides: lanes that the mask of a _sync function names may wait at another call
; CHECK-DAG: ; behind_the_side: lanes that the mask of a _sync function names may wait at another call
; CHECK-DAG: ; unknown_mask: lanes that the mask of a _sync function names may wait at another call

declare i32 @__kiln_lane()
declare void @__kiln_mask(i32) convergent

define void @both_sides() {
entry:
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %then, label %else
then:
  call void @__kiln_mask(i32 -1) convergent
  ret void
else:
  call void @__kiln_mask(i32 -1) convergent
  ret void
}

define void @behind_the_side() {
entry:
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %then, label %join
then:
  call void @__kiln_mask(i32 -1) convergent
  br label %join
join:
  call void @__kiln_mask(i32 -1) convergent
  ret void
}

define void @unknown_mask(ptr %masks) {
entry:
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i32, ptr %masks, i32 %lane
  %mask = load i32, ptr %at
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %then, label %else
then:
  call void @__kiln_mask(i32 %mask) convergent
  ret void
else:
  call void @__kiln_mask(i32 %mask) convergent
  ret void
}
