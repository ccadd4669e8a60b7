; Values of more than 16 bits, addresses, uniform values and a single operation between two conversions stay.
; RUN: kiln-opt --passes=narrow-integers %s | FileCheck %s

; CHECK-NOT: i16
; CHECK-NOT: {{(add|mul|shl) i8}}

declare i32 @__kiln_lane()

; CHECK-LABEL: define i1 @wide(
define i1 @wide(ptr %x) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i8, ptr %x, i32 %lane
  %a = load i8, ptr %at
  %w = zext i8 %a to i32
  %s = shl i32 %w, 9
  %r = icmp sgt i32 %s, 1000
  ret i1 %r
}

; CHECK-LABEL: define i8 @address(
define i8 @address(ptr %x, ptr %table) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i8, ptr %x, i32 %lane
  %a = load i8, ptr %at
  %w = zext i8 %a to i32
  %s = add i32 %w, 7
  %index = sext i32 %s to i64
  %from = getelementptr i8, ptr %table, i64 %index
  %r = load i8, ptr %from
  ret i8 %r
}

; CHECK-LABEL: define i1 @uniform(
define i1 @uniform(ptr %x) {
  %a = load i8, ptr %x, !invariant.load !0
  %w = zext i8 %a to i32
  %s = add i32 %w, 7
  %t = mul i32 %s, 3
  %r = icmp sgt i32 %t, 20
  ret i1 %r
}

; A lane's number is no extension of less: its sum is a position.
; CHECK-LABEL: define i1 @position(
define i1 @position() {
  %lane = call i32 @__kiln_lane()
  %s = add i32 %lane, 7
  %t = mul i32 %s, 3
  %r = icmp sgt i32 %t, 20
  ret i1 %r
}

; CHECK-LABEL: define i32 @single(
define i32 @single(ptr %x) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i8, ptr %x, i32 %lane
  %a = load i8, ptr %at
  %w = zext i8 %a to i32
  %s = add i32 %w, 7
  ret i32 %s
}

!0 = !{}
