; A reciprocal root that no instruction has replaced becomes the correctly rounded value, its second operand, in each
; function that has one.
; RUN: kiln-opt --passes=approximations %s | FileCheck %s

declare float @__kiln_rsqrt(float, float)
declare float @llvm.sqrt.f32(float)

; CHECK-NOT: @__kiln_rsqrt
; CHECK-LABEL: define float @reciprocal(
; CHECK: %root = call float @llvm.sqrt.f32(float %x)
; CHECK-NEXT: %rounded = fdiv float 1.000000e+00, %root
; CHECK-NEXT: ret float %rounded
define float @reciprocal(float %x) {
  %root = call float @llvm.sqrt.f32(float %x)
  %rounded = fdiv float 1.0, %root
  %r = call float @__kiln_rsqrt(float %x, float %rounded)
  ret float %r
}

; CHECK-LABEL: define void @stored(
; CHECK-NEXT: store float %rounded, ptr %p
; CHECK-NEXT: ret void
; CHECK-NOT: @__kiln_rsqrt
define void @stored(float %x, float %rounded, ptr %p) {
  %r = call float @__kiln_rsqrt(float %x, float %rounded)
  store float %r, ptr %p
  ret void
}
