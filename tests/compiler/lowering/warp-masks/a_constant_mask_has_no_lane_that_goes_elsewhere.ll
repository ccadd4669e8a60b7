; The condition, evaluated for each lane, sends lanes 0 to 15 to one side. A mask of just these there is right; with
; lane
; 16 too, it names one that waits on the other side.
; RUN: kiln-opt --passes=warp-masks %s | FileCheck %s

; CHECK-DAG: ; halves: masks name the lanes that are together
; CHECK-DAG: ; one_lane_more: lanes that the mask of a _sync function names may wait at another call

declare i32 @__kiln_lane()
declare void @__kiln_mask(i32) convergent

define void @halves() {
entry:
  %lane = call i32 @__kiln_lane()
  %low = icmp ult i32 %lane, 16
  br i1 %low, label %then, label %else
then:
  call void @__kiln_mask(i32 65535) convergent
  ret void
else:
  call void @__kiln_mask(i32 -65536) convergent
  ret void
}

define void @one_lane_more() {
entry:
  %lane = call i32 @__kiln_lane()
  %low = icmp ult i32 %lane, 16
  br i1 %low, label %then, label %else
then:
  call void @__kiln_mask(i32 131071) convergent
  ret void
else:
  call void @__kiln_mask(i32 -65536) convergent
  ret void
}
