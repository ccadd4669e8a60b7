; Whether a position is below a multiple of 32 does not depend on the lane, nor whether it is above the last lane of
; one. With other numbers, or for equality, it does.
; RUN: kiln-opt --passes=affine-lanes,dce %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define i1 @below_a_multiple(
; CHECK: %[[C:.*]] = icmp ult i32 %block, 64
; CHECK-NEXT: ret i1 %[[C]]
define i1 @below_a_multiple(i32 %x) {
  %lane = call i32 @__kiln_lane()
  %block = and i32 %x, -32
  %position = or disjoint i32 %block, %lane
  %c = icmp ult i32 %position, 64
  ret i1 %c
}

; The same with the position on the right.
; CHECK-LABEL: define i1 @a_multiple_above(
; CHECK: %[[C:.*]] = icmp slt i32 %block, 64
; CHECK-NEXT: ret i1 %[[C]]
define i1 @a_multiple_above(i32 %x) {
  %lane = call i32 @__kiln_lane()
  %block = and i32 %x, -32
  %position = or disjoint i32 %block, %lane
  %c = icmp sgt i32 64, %position
  ret i1 %c
}

; CHECK-LABEL: define i1 @above_the_last_lane(
; CHECK: %[[C:.*]] = icmp ugt i32 %block, 63
; CHECK-NEXT: ret i1 %[[C]]
define i1 @above_the_last_lane(i32 %x) {
  %lane = call i32 @__kiln_lane()
  %block = and i32 %x, -32
  %position = or disjoint i32 %block, %lane
  %c = icmp ugt i32 %position, 63
  ret i1 %c
}

; CHECK-LABEL: define i1 @above_a_multiple(
; CHECK: %c = icmp ugt i32 %position, 64
define i1 @above_a_multiple(i32 %x) {
  %lane = call i32 @__kiln_lane()
  %block = and i32 %x, -32
  %position = or disjoint i32 %block, %lane
  %c = icmp ugt i32 %position, 64
  ret i1 %c
}

; CHECK-LABEL: define i1 @below_63(
; CHECK: %c = icmp ult i32 %position, 63
define i1 @below_63(i32 %x) {
  %lane = call i32 @__kiln_lane()
  %block = and i32 %x, -32
  %position = or disjoint i32 %block, %lane
  %c = icmp ult i32 %position, 63
  ret i1 %c
}

; CHECK-LABEL: define i1 @equal(
; CHECK: %c = icmp eq i32 %position, 64
define i1 @equal(i32 %x) {
  %lane = call i32 @__kiln_lane()
  %block = and i32 %x, -32
  %position = or disjoint i32 %block, %lane
  %c = icmp eq i32 %position, 64
  ret i1 %c
}
