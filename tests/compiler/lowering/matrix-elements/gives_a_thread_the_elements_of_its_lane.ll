; In Apple's map a thread has the elements of its own lane, which is the lower five bits of its index in the
; threadgroup.
; RUN: kiln-opt --passes=matrix-elements %s | FileCheck %s

declare i32 @__kiln_matrix_lane()

; CHECK-LABEL: @lane(
; CHECK: %[[INDEX:.+]] = call i32 @__kiln_value(i32 18)
; CHECK: %[[LANE:.+]] = and i32 %[[INDEX]], 31
; CHECK: ret i32 %[[LANE]]
define i32 @lane() {
  %lane = call i32 @__kiln_matrix_lane()
  ret i32 %lane
}
