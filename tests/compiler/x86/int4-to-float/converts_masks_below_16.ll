; A permutation selects by four bits. The table therefore repeats its numbers for masks of fewer bits, and has no number
; for the fifth bit: with a mask of 16 or more the conversion stays.
; RUN: kiln-opt --passes=int4-to-float --cpu=x86-64-v4 %s | FileCheck %s

; CHECK-LABEL: @two_bits(
; CHECK: permvar.sf.512(<16 x float> <float 0.000000e+00, float 1.000000e+00, float 2.000000e+00, float 3.000000e+00, float 0.000000e+00, float 1.000000e+00, float 2.000000e+00, float 3.000000e+00, float 0.000000e+00,
define <16 x float> @two_bits(<16 x i32> %words) {
  %bits = and <16 x i32> %words, splat (i32 3)
  %floats = uitofp <16 x i32> %bits to <16 x float>
  ret <16 x float> %floats
}

; CHECK-LABEL: @bits_in_place(
; CHECK: permvar.sf.512(<16 x float> <float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 0.000000e+00, float 4.000000e+00, float 4.000000e+00, float 4.000000e+00, float 4.000000e+00, float 8.000000e+00,
define <16 x float> @bits_in_place(<16 x i32> %words) {
  %bits = and <16 x i32> %words, splat (i32 12)
  %floats = uitofp <16 x i32> %bits to <16 x float>
  ret <16 x float> %floats
}

; CHECK-LABEL: @the_fifth_bit(
; CHECK-NOT: permvar
; CHECK: uitofp <16 x i32> %bits to <16 x float>
define <16 x float> @the_fifth_bit(<16 x i32> %words) {
  %bits = and <16 x i32> %words, splat (i32 16)
  %floats = uitofp <16 x i32> %bits to <16 x float>
  ret <16 x float> %floats
}
