; Bits in which all that is added to the lane is 0 are the lane's alone. With 16 threads a row these are four.
; RUN: kiln-opt --passes=affine-lanes,dce %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define i32 @partner(
; CHECK: %[[L:.*]] = xor i32 %lane, 1
; CHECK-NEXT: %[[R:.*]] = add i32 %[[L]], %row
; CHECK-NEXT: ret i32 %[[R]]
define i32 @partner(i32 %x) {
  %lane = call i32 @__kiln_lane()
  %row = shl i32 %x, 4
  %at = add i32 %row, %lane
  %result = xor i32 %at, 1
  ret i32 %result
}

; Through several terms.
; CHECK-LABEL: define i32 @pair(
; CHECK: %[[L:.*]] = and i32 %lane, -2
; CHECK-NEXT: %[[P:.*]] = or disjoint i32 %part, %[[L]]
; CHECK-NEXT: %[[R:.*]] = add i32 %[[P]], %row
; CHECK-NEXT: ret i32 %[[R]]
define i32 @pair(i32 %x, i32 %y) {
  %lane = call i32 @__kiln_lane()
  %part = and i32 %y, -32
  %in_part = or disjoint i32 %part, %lane
  %row = shl i32 %x, 4
  %at = add i32 %row, %in_part
  %result = and i32 %at, -2
  ret i32 %result
}

; CHECK-LABEL: define i32 @second_of_pair(
; CHECK: %[[L:.*]] = or i32 %lane, 1
; CHECK-NEXT: add i32 %[[L]], %row
define i32 @second_of_pair(i32 %x) {
  %lane = call i32 @__kiln_lane()
  %row = shl i32 %x, 4
  %at = add i32 %row, %lane
  %result = or i32 %at, 1
  ret i32 %result
}

; CHECK-LABEL: define i32 @place_in_four(
; CHECK: %[[L:.*]] = and i32 %lane, 3
; CHECK-NEXT: ret i32 %[[L]]
define i32 @place_in_four(i32 %x) {
  %lane = call i32 @__kiln_lane()
  %row = shl i32 %x, 4
  %at = add i32 %row, %lane
  %result = and i32 %at, 3
  ret i32 %result
}

; CHECK-LABEL: define i32 @half(
; CHECK: %[[S:.*]] = add i32 0, %row
; CHECK-DAG: %[[M:.*]] = lshr i32 %[[S]], 1
; CHECK-DAG: %[[L:.*]] = lshr i32 %lane, 1
; CHECK: add i32 %[[M]], %[[L]]
define i32 @half(i32 %x) {
  %lane = call i32 @__kiln_lane()
  %row = shl i32 %x, 4
  %at = add nuw i32 %row, %lane
  %result = lshr i32 %at, 1
  ret i32 %result
}
