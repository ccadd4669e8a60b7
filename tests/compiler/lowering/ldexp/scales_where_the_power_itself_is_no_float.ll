; The border for which there are two multiplications: 2^128 is not finite and 2^-149 has no normal exponent, but
; products with them may be floats. An odd negative exponent is halved towards minus infinity; no part is lost.
; RUN: kiln-opt --passes=ldexp,instsimplify %s | FileCheck %s

declare float @__kiln_scaled(float, float, i32)

; CHECK-LABEL: define float @half_of_2_to_128(
; CHECK: ret float 0x47E0000000000000
define float @half_of_2_to_128() {
  %r = call float @__kiln_scaled(float 0.5, float 128.0, i32 128)
  ret float %r
}

; CHECK-LABEL: define float @smallest_subnormal(
; CHECK: ret float 0x36A0000000000000
define float @smallest_subnormal() {
  %r = call float @__kiln_scaled(float 1.0, float -149.0, i32 -149)
  ret float %r
}

; CHECK-LABEL: define float @below_the_smallest(
; CHECK: ret float 0.000000e+00
define float @below_the_smallest() {
  %r = call float @__kiln_scaled(float 1.0, float -150.0, i32 -150)
  ret float %r
}

; CHECK-LABEL: define float @unscaled(
; CHECK: ret float 3.000000e+00
define float @unscaled() {
  %r = call float @__kiln_scaled(float 3.0, float 0.0, i32 0)
  ret float %r
}

; CHECK-LABEL: define float @too_large(
; CHECK: ret float 0x7FF0000000000000
define float @too_large() {
  %r = call float @__kiln_scaled(float 1.0, float 128.0, i32 128)
  ret float %r
}
