; Lane operations, which need no mask, and functions of similar names stay.
; RUN: kiln-opt --passes=remove-warp-masks %s | FileCheck %s

declare i32 @__kiln_lanes_shuffle32(i32, i32) convergent
declare void @__kiln_masked(i32) convergent
declare void @mask(i32)

; CHECK-LABEL: define i32 @shuffle(
; CHECK-NEXT: call void @__kiln_masked(i32 %lanes)
; CHECK-NEXT: call void @mask(i32 %lanes)
; CHECK-NEXT: %r = call i32 @__kiln_lanes_shuffle32(i32 %value, i32 3)
; CHECK-NEXT: ret i32 %r
define i32 @shuffle(i32 %value, i32 %lanes) {
  call void @__kiln_masked(i32 %lanes) convergent
  call void @mask(i32 %lanes)
  %r = call i32 @__kiln_lanes_shuffle32(i32 %value, i32 3) convergent
  ret i32 %r
}
