; From the power of two on, a bit depends on the lane and on what is added to it.
; RUN: kiln-opt --passes=affine-lanes,dce %s | FileCheck %s

declare i32 @__kiln_lane()

; A carry from the lane's fifth bit changes the sixth: that is not the lane's alone.
; CHECK-LABEL: define i32 @fifth_bit(
; CHECK: %result = xor i32 %at, 16
define i32 @fifth_bit(i32 %x) {
  %lane = call i32 @__kiln_lane()
  %row = shl i32 %x, 4
  %at = add i32 %row, %lane
  %result = xor i32 %at, 16
  ret i32 %result
}

; The shift is by more bits than are the lane's alone.
; CHECK-LABEL: define i32 @eighth_of_rows_of_four(
; CHECK: %result = lshr i32 %at, 3
define i32 @eighth_of_rows_of_four(i32 %x) {
  %lane = call i32 @__kiln_lane()
  %row = shl i32 %x, 2
  %at = add nuw i32 %row, %lane
  %result = lshr i32 %at, 3
  ret i32 %result
}

; The lane is in both terms.
; CHECK-LABEL: define i32 @twice(
; CHECK: %result = xor i32 %sum, 1
define i32 @twice(i32 %x) {
  %lane = call i32 @__kiln_lane()
  %row = shl i32 %x, 4
  %at = add i32 %row, %lane
  %sum = add i32 %at, %lane
  %result = xor i32 %sum, 1
  ret i32 %result
}
