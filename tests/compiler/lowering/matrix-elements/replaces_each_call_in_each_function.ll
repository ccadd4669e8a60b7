; All calls of a module are replaced, in whichever function they are. None is left for an engine.
; RUN: kiln-opt --passes=matrix-elements %s | FileCheck %s

declare i32 @__kiln_matrix_lane()

; CHECK-LABEL: @row(
; CHECK-NOT: call i32 @__kiln_matrix_lane
; CHECK: %[[LANE:.+]] = and i32 %{{.+}}, 31
; CHECK: %shifted = lshr i32 %[[LANE]], 1
define i32 @row() {
  %lane = call i32 @__kiln_matrix_lane()
  %shifted = lshr i32 %lane, 1
  ret i32 %shifted
}

; CHECK-LABEL: @both(
; CHECK-NOT: call i32 @__kiln_matrix_lane
; CHECK: %[[FIRST:.+]] = and i32 %{{.+}}, 31
; CHECK-NOT: call i32 @__kiln_matrix_lane
; CHECK: %[[SECOND:.+]] = and i32 %{{.+}}, 31
; CHECK: %sum = add i32 %[[FIRST]], %[[SECOND]]
define i32 @both() {
  %first = call i32 @__kiln_matrix_lane()
  %second = call i32 @__kiln_matrix_lane()
  %sum = add i32 %first, %second
  ret i32 %sum
}
