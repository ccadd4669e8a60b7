; A bitcast between vectors of equal length is one of each component, which splitting can do; one between two numbers
; has no components. The border: with lengths 2 and 1 there is nothing to pair.
; RUN: kiln-opt --passes=vector-bitcasts %s | FileCheck %s

; CHECK-LABEL: define <4 x i32> @equal_length(
; CHECK-NEXT: %i = bitcast <4 x float> %v to <4 x i32>
; CHECK-NEXT: ret <4 x i32> %i
define <4 x i32> @equal_length(<4 x float> %v) {
  %i = bitcast <4 x float> %v to <4 x i32>
  ret <4 x i32> %i
}

; CHECK-LABEL: define i32 @numbers(
; CHECK-NEXT: %i = bitcast float %x to i32
; CHECK-NEXT: ret i32 %i
define i32 @numbers(float %x) {
  %i = bitcast float %x to i32
  ret i32 %i
}

; CHECK-LABEL: define <1 x i64> @other_length(
; CHECK-NOT: bitcast <2 x i32>
; CHECK: insertelement <1 x i64>
define <1 x i64> @other_length(<2 x i32> %v) {
  %i = bitcast <2 x i32> %v to <1 x i64>
  ret <1 x i64> %i
}
