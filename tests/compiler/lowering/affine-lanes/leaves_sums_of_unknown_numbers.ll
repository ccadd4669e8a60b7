; Without multiples of a power of two a change of bits is no change of the lane's, nor is a shift of a sum that may wrap.
; RUN: kiln-opt --passes=affine-lanes,dce %s | FileCheck %s

declare i32 @__kiln_lane()

; Nothing is known of what is added.
; CHECK-LABEL: define i32 @any_sum(
; CHECK: %result = xor i32 %at, 1
define i32 @any_sum(i32 %x) {
  %lane = call i32 @__kiln_lane()
  %at = add i32 %x, %lane
  %result = xor i32 %at, 1
  ret i32 %result
}

; A sum that wraps would have its upper bits elsewhere.
; CHECK-LABEL: define i32 @half_of_a_sum_that_may_wrap(
; CHECK: %result = lshr i32 %at, 1
define i32 @half_of_a_sum_that_may_wrap(i32 %x) {
  %lane = call i32 @__kiln_lane()
  %row = shl i32 %x, 4
  %at = add i32 %row, %lane
  %result = lshr i32 %at, 1
  ret i32 %result
}
