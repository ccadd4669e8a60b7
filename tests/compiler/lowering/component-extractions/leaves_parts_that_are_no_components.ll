; Bits of two components, of half a component, and of a number that was no vector stay as they are.
; RUN: kiln-opt --passes=component-extractions %s | FileCheck %s

; CHECK-NOT: extractelement

; CHECK-LABEL: @between(
; CHECK: trunc i64
define i32 @between(<4 x i16> %v) {
  %bits = bitcast <4 x i16> %v to i64
  %shifted = lshr i64 %bits, 16
  %part = trunc i64 %shifted to i32
  ret i32 %part
}

; CHECK-LABEL: @half(
; CHECK: trunc i64
define i16 @half(<2 x i32> %v) {
  %bits = bitcast <2 x i32> %v to i64
  %shifted = lshr i64 %bits, 16
  %part = trunc i64 %shifted to i16
  ret i16 %part
}

; CHECK-LABEL: @number(
; CHECK: trunc i64
define i32 @number(double %d) {
  %bits = bitcast double %d to i64
  %part = trunc i64 %bits to i32
  ret i32 %part
}
