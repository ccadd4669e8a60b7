; Two values that may both be NaNs have no order that serves both. What is a float anyway, and scalars, are compared as
; floats.
; RUN: kiln-opt --passes=half-comparisons --cpu=x86-64-v4 %s | FileCheck %s

; CHECK-LABEL: @two_values(
; CHECK: fcmp olt <4 x half> %x, %y
define <4 x i1> @two_values(<4 x half> %x, <4 x half> %y) {
  %less = fcmp olt <4 x half> %x, %y
  ret <4 x i1> %less
}

; CHECK-LABEL: @a_nan(
; CHECK: fcmp olt <4 x half> %x, <half 0xH7E00, half 0xH7E00, half 0xH7E00, half 0xH7E00>
define <4 x i1> @a_nan(<4 x half> %x) {
  %less = fcmp olt <4 x half> %x, splat (half 0xH7E00)
  ret <4 x i1> %less
}

; CHECK-LABEL: @a_scalar(
; CHECK: fcmp ogt half %x, 0xH3800
define i1 @a_scalar(half %x) {
  %more = fcmp ogt half %x, 0xH3800
  ret i1 %more
}

; CHECK-LABEL: @floats_anyway(
; CHECK: fcmp ogt <4 x half> %x, <half 0xH3800, half 0xH3800, half 0xH3800, half 0xH3800>
define <4 x float> @floats_anyway(<4 x half> %x) {
  %more = fcmp ogt <4 x half> %x, splat (half 0xH3800)
  %float = fpext <4 x half> %x to <4 x float>
  %chosen = select <4 x i1> %more, <4 x float> %float, <4 x float> zeroinitializer
  ret <4 x float> %chosen
}
