; Clang passes `uint2` in a register of 64 bits: its components are taken as those of the vector again, also where the
; number had another type on the way, and where all that is known of a component is a value.
; RUN: kiln-opt --passes=component-extractions %s | FileCheck %s

; CHECK-LABEL: @position(
; CHECK: %sum = add i32 %x, %y
define i32 @position(i32 %x, i32 %y) {
  %one = insertelement <2 x i32> poison, i32 %x, i32 0
  %both = insertelement <2 x i32> %one, i32 %y, i32 1
  %number = bitcast <2 x i32> %both to double
  %bits = bitcast double %number to i64
  %first = trunc i64 %bits to i32
  %shifted = lshr i64 %bits, 32
  %second = trunc i64 %shifted to i32
  %sum = add i32 %first, %second
  ret i32 %sum
}

; CHECK-LABEL: @bytes(
; CHECK: %[[THIRD:.*]] = extractelement <4 x i8> %v, i64 2
; CHECK: ret i8 %[[THIRD]]
define i8 @bytes(<4 x i8> %v) {
  %bits = bitcast <4 x i8> %v to i32
  %shifted = lshr i32 %bits, 16
  %third = trunc i32 %shifted to i8
  ret i8 %third
}

; CHECK-LABEL: @floats(
; CHECK: %[[FIRST:.*]] = extractelement <2 x float> %v, i64 0
; CHECK: bitcast float %[[FIRST]] to i32
define i32 @floats(<2 x float> %v) {
  %bits = bitcast <2 x float> %v to i64
  %first = trunc i64 %bits to i32
  ret i32 %first
}
