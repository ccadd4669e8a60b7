; Only the device library's own scaling is expanded. Multiplications, LLVM's ldexp and functions of similar names stay.
; RUN: kiln-opt --passes=ldexp %s | FileCheck %s

declare float @llvm.ldexp.f32.i32(float, i32)
declare float @__kiln_scaled_again(float, float, i32)

; CHECK-LABEL: define float @others(
; CHECK-NEXT: %a = fmul float %x, 8.000000e+00
; CHECK-NEXT: %b = call float @llvm.ldexp.f32.i32(float %a, i32 %n)
; CHECK-NEXT: %c = call float @__kiln_scaled_again(float %b, float 3.000000e+00, i32 3)
; CHECK-NEXT: ret float %c
define float @others(float %x, i32 %n) {
  %a = fmul float %x, 8.0
  %b = call float @llvm.ldexp.f32.i32(float %a, i32 %n)
  %c = call float @__kiln_scaled_again(float %b, float 3.0, i32 3)
  ret float %c
}
