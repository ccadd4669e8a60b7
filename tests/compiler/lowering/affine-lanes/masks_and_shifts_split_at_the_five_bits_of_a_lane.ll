; A mask either keeps the five bits of a lane, or has no others. A shift by five or more loses the lane; by less,
; several lanes have the same value.
; RUN: kiln-opt --passes=affine-lanes,dce %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define i32 @five_bits(
; CHECK: %[[R:.*]] = and i32 %lane, 31
; CHECK-NEXT: ret i32 %[[R]]
define i32 @five_bits(i32 %x) {
  %lane = call i32 @__kiln_lane()
  %block = and i32 %x, -32
  %position = or disjoint i32 %block, %lane
  %result = and i32 %position, 31
  ret i32 %result
}

; CHECK-LABEL: define i32 @four_bits(
; CHECK: %[[R:.*]] = and i32 %lane, 15
; CHECK-NEXT: ret i32 %[[R]]
define i32 @four_bits(i32 %x) {
  %lane = call i32 @__kiln_lane()
  %block = and i32 %x, -32
  %position = or disjoint i32 %block, %lane
  %result = and i32 %position, 15
  ret i32 %result
}

; Some of the lane's bits and some of the rest.
; CHECK-LABEL: define i32 @bits_of_both(
; CHECK: %result = and i32 %position, 47
define i32 @bits_of_both(i32 %x) {
  %lane = call i32 @__kiln_lane()
  %block = and i32 %x, -32
  %position = or disjoint i32 %block, %lane
  %result = and i32 %position, 47
  ret i32 %result
}

; CHECK-LABEL: define i32 @shift_by_five(
; CHECK: %[[R:.*]] = lshr i32 %block, 5
; CHECK-NEXT: ret i32 %[[R]]
define i32 @shift_by_five(i32 %x) {
  %lane = call i32 @__kiln_lane()
  %block = and i32 %x, -32
  %position = or disjoint i32 %block, %lane
  %result = lshr i32 %position, 5
  ret i32 %result
}

; CHECK-LABEL: define i32 @shift_by_four(
; CHECK-DAG: %[[M:.*]] = lshr i32 %block, 4
; CHECK-DAG: %[[L:.*]] = lshr i32 %lane, 4
; CHECK: %[[R:.*]] = or disjoint i32 %[[M]], %[[L]]
; CHECK-NEXT: ret i32 %[[R]]
define i32 @shift_by_four(i32 %x) {
  %lane = call i32 @__kiln_lane()
  %block = and i32 %x, -32
  %position = or disjoint i32 %block, %lane
  %result = lshr i32 %position, 4
  ret i32 %result
}
