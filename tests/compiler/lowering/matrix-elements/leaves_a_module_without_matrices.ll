; A kernel that asks for its lane in another way keeps that, and gets no declaration that it does not need.
; RUN: kiln-opt --passes=matrix-elements %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-NOT: @__kiln_value
; CHECK-LABEL: @lane(
; CHECK: %lane = call i32 @__kiln_lane()
; CHECK-NEXT: ret i32 %lane
; CHECK-NOT: @__kiln_value
define i32 @lane() {
  %lane = call i32 @__kiln_lane()
  ret i32 %lane
}
