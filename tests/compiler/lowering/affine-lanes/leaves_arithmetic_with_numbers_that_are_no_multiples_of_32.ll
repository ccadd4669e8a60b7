; With other numbers, the lane would carry over into the rest. Nor is a value split that is no multiple plus the lane.
; RUN: kiln-opt --passes=affine-lanes %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define i32 @sum(
; CHECK: %result = add i32 %position, %n
define i32 @sum(i32 %x, i32 %n) {
  %lane = call i32 @__kiln_lane()
  %block = and i32 %x, -32
  %position = or disjoint i32 %block, %lane
  %result = add i32 %position, %n
  ret i32 %result
}

; CHECK-LABEL: define i32 @quotient(
; CHECK: %result = udiv i32 %position, 48
define i32 @quotient(i32 %x) {
  %lane = call i32 @__kiln_lane()
  %block = and i32 %x, -32
  %position = or disjoint i32 %block, %lane
  %result = udiv i32 %position, 48
  ret i32 %result
}

; CHECK-LABEL: define i32 @unknown_block(
; CHECK: %result = udiv i32 %position, 64
define i32 @unknown_block(i32 %x) {
  %lane = call i32 @__kiln_lane()
  %position = add i32 %x, %lane
  %result = udiv i32 %position, 64
  ret i32 %result
}

; The position divides, instead of being divided.
; CHECK-LABEL: define i32 @divisor(
; CHECK: %result = udiv i32 %n, %position
define i32 @divisor(i32 %x, i32 %n) {
  %lane = call i32 @__kiln_lane()
  %block = and i32 %x, -32
  %position = or disjoint i32 %block, %lane
  %result = udiv i32 %n, %position
  ret i32 %result
}

; Signed division rounds to zero, so negative positions depend on the lane.
; CHECK-LABEL: define i32 @signed_quotient(
; CHECK: %result = sdiv i32 %position, 64
define i32 @signed_quotient(i32 %x) {
  %lane = call i32 @__kiln_lane()
  %block = and i32 %x, -32
  %position = or disjoint i32 %block, %lane
  %result = sdiv i32 %position, 64
  ret i32 %result
}

; CHECK-LABEL: define void @counter(
; CHECK: %i = phi i32 [ %position, %entry ], [ %i.next, %loop ]
define void @counter(ptr %y, i32 %x, i32 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  %block = and i32 %x, -32
  %position = or disjoint i32 %block, %lane
  br label %loop
loop:
  %i = phi i32 [ %position, %entry ], [ %i.next, %loop ]
  store i32 %i, ptr %y
  %i.next = add i32 %i, 16
  %again = icmp ult i32 %i.next, %n
  br i1 %again, label %loop, label %done
done:
  ret void
}
