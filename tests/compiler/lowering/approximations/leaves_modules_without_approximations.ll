; Roots and divisions that the body itself writes are not approximations: they stay, as do instructions for estimates
; that were chosen before.
; RUN: kiln-opt --passes=approximations %s | FileCheck %s

declare float @llvm.sqrt.f32(float)
declare <8 x float> @llvm.x86.avx.rsqrt.ps.256(<8 x float>)

; CHECK-LABEL: define float @exact(
; CHECK-NEXT: %root = call float @llvm.sqrt.f32(float %x)
; CHECK-NEXT: %r = fdiv float 1.000000e+00, %root
; CHECK-NEXT: ret float %r
define float @exact(float %x) {
  %root = call float @llvm.sqrt.f32(float %x)
  %r = fdiv float 1.0, %root
  ret float %r
}

; CHECK-LABEL: define <8 x float> @estimate(
; CHECK-NEXT: %r = call <8 x float> @llvm.x86.avx.rsqrt.ps.256(<8 x float> %x)
; CHECK-NEXT: ret <8 x float> %r
define <8 x float> @estimate(<8 x float> %x) {
  %r = call <8 x float> @llvm.x86.avx.rsqrt.ps.256(<8 x float> %x)
  ret <8 x float> %r
}
