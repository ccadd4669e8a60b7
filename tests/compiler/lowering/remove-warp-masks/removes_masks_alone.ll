; Once it is known that the lanes are together, masks have no further use. Nothing else is removed, not even the vote of
; which the mask was made.
; RUN: kiln-opt --passes=remove-warp-masks %s | FileCheck %s

declare i32 @__kiln_lanes_vote1(i1) convergent
declare void @__kiln_mask(i32) convergent

; CHECK-LABEL: define void @two_masks(
; CHECK-NEXT: entry:
; CHECK-NEXT: %mask = call i32 @__kiln_lanes_vote1(i1 %condition)
; CHECK-NEXT: br i1 %condition, label %then, label %join
; CHECK: then:
; CHECK-NEXT: store i32 1, ptr %y
; CHECK-NEXT: br label %join
; CHECK: join:
; CHECK-NEXT: ret void
define void @two_masks(ptr %y, i1 %condition) {
entry:
  %mask = call i32 @__kiln_lanes_vote1(i1 %condition) convergent
  call void @__kiln_mask(i32 %mask) convergent
  br i1 %condition, label %then, label %join
then:
  store i32 1, ptr %y
  call void @__kiln_mask(i32 %mask) convergent
  br label %join
join:
  ret void
}
