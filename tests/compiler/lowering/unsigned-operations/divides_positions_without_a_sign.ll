; A position in the grid is no negative `int`, nor is what is computed of it without a subtraction. So divisions,
; remainders and shifts of it need no sign. No flag is added: lanes without a thread may have other numbers.
; RUN: kiln-opt --passes=unsigned-operations %s | FileCheck %s

declare i32 @__kiln_value(i32)

; CHECK-LABEL: define i32 @position(
; CHECK: %half = udiv i32 %x, 2
; CHECK: %rest = urem i32 %x, 3
; CHECK: %quarter = lshr i32 %x, 2
; CHECK: %row = udiv i32 %half, 7
; CHECK: %index = zext i32 %row to i64
; CHECK: %eighth = udiv i64 %index, 8
define i32 @position(ptr %y) {
  %group = call i32 @__kiln_value(i32 3)
  %threads = call i32 @__kiln_value(i32 9)
  %first = mul i32 %group, %threads
  %at = call i32 @__kiln_value(i32 0)
  %x = add i32 %first, %at
  %half = sdiv i32 %x, 2
  %rest = srem i32 %x, 3
  %quarter = ashr i32 %x, 2
  %row = sdiv i32 %half, 7
  %index = zext i32 %row to i64
  %eighth = sdiv i64 %index, 8
  store i64 %eighth, ptr %y
  %a = add i32 %rest, %quarter
  ret i32 %a
}

; Positions in the threadgroup and sizes, by one another.
; CHECK-LABEL: define i32 @sizes(
; CHECK: %q = udiv i32 %at, %size
; CHECK: %r = urem i32 %groups, %threads
define i32 @sizes() {
  %at = call i32 @__kiln_value(i32 0)
  %size = call i32 @__kiln_value(i32 6)
  %q = sdiv i32 %at, %size
  %groups = call i32 @__kiln_value(i32 15)
  %threads = call i32 @__kiln_value(i32 12)
  %r = srem i32 %groups, %threads
  %a = add i32 %q, %r
  ret i32 %a
}

; A component of a vector.
; CHECK-LABEL: define i32 @component(
; CHECK: udiv i32 %x, 2
define i32 @component() {
  %group = call i32 @__kiln_value(i32 4)
  %threads = call i32 @__kiln_value(i32 10)
  %first = mul i32 %group, %threads
  %at = call i32 @__kiln_value(i32 1)
  %sum = add i32 %first, %at
  %position = insertelement <2 x i32> zeroinitializer, i32 %sum, i32 1
  %x = extractelement <2 x i32> %position, i32 1
  %half = sdiv i32 %x, 2
  ret i32 %half
}
