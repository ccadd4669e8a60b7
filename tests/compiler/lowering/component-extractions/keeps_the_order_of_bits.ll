; The last component, and shifts by a whole number of bits that leave nothing but it. A shift that is a variable stays.
; RUN: kiln-opt --passes=component-extractions %s | FileCheck %s

; CHECK-LABEL: @last(
; CHECK: extractelement <4 x i32> %v, i64 3
define i32 @last(<4 x i32> %v) {
  %bits = bitcast <4 x i32> %v to i128
  %shifted = lshr i128 %bits, 96
  %part = trunc i128 %shifted to i32
  ret i32 %part
}

; CHECK-LABEL: @variable(
; CHECK: lshr i64 %bits, %shift
; CHECK: trunc
define i32 @variable(<2 x i32> %v, i64 %shift) {
  %bits = bitcast <2 x i32> %v to i64
  %shifted = lshr i64 %bits, %shift
  %part = trunc i64 %shifted to i32
  ret i32 %part
}

; CHECK-LABEL: @chain(
; CHECK: extractelement <2 x i32> %v, i64 1
define i32 @chain(<2 x i32> %v) {
  %a = bitcast <2 x i32> %v to double
  %b = bitcast double %a to <1 x i64>
  %c = bitcast <1 x i64> %b to i64
  %shifted = lshr i64 %c, 32
  %part = trunc i64 %shifted to i32
  ret i32 %part
}
