; What data or arguments say, what is subtracted from, and what may have wrapped keeps its sign, as do vectors and
; numbers of more than 64 bits.
; RUN: kiln-opt --passes=unsigned-operations %s | FileCheck %s

declare i32 @__kiln_value(i32)

; CHECK-LABEL: define void @numbers(
; CHECK: %of_data = sdiv i32 %data, 2
; CHECK: %of_difference = sdiv i32 %before, 2
; CHECK: %by_data = srem i32 %at, %data
; CHECK: %of_product = ashr i32 %product, 3
; CHECK: %of_vector = sdiv <2 x i32> %vector, <i32 2, i32 2>
; CHECK: %of_wide = sdiv i128 %wide, 2
; CHECK: %is_less = icmp slt i32 %before, 0
define void @numbers(ptr %x, ptr %y) {
  %data = load i32, ptr %x
  %at = call i32 @__kiln_value(i32 0)
  %of_data = sdiv i32 %data, 2
  %before = sub i32 %at, 1
  %of_difference = sdiv i32 %before, 2
  %by_data = srem i32 %at, %data
  %size = call i32 @__kiln_value(i32 12)
  %product = mul i32 %size, %size
  %of_product = ashr i32 %product, 3
  %vector = insertelement <2 x i32> zeroinitializer, i32 %at, i32 0
  %of_vector = sdiv <2 x i32> %vector, <i32 2, i32 2>
  %wide = zext i32 %at to i128
  %of_wide = sdiv i128 %wide, 2
  %is_less = icmp slt i32 %before, 0
  store i32 %of_data, ptr %y
  store i32 %of_difference, ptr %y
  store i32 %by_data, ptr %y
  store i32 %of_product, ptr %y
  store <2 x i32> %of_vector, ptr %y
  store i128 %of_wide, ptr %y
  store i1 %is_less, ptr %y
  ret void
}
