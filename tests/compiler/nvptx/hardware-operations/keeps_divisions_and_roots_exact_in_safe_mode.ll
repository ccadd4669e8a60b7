; In the safe math mode no division or square root becomes approximate, whatever its flags. Conversions of doubles, and
; those whose result is undefined outside of the integer's range, stay as well.
; RUN: kiln-opt --passes=hardware-operations %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: @divides(
; CHECK-NEXT: fdiv afn float %x, %y
; CHECK-NEXT: fdiv float
define float @divides(float %x, float %y) {
  %quotient = fdiv afn float %x, %y
  %again = fdiv float %quotient, %y
  ret float %again
}

; CHECK-LABEL: @root(
; CHECK-NEXT: call afn float @llvm.sqrt.f32(float %x)
define float @root(float %x) {
  %root = call afn float @llvm.sqrt.f32(float %x)
  ret float %root
}

; CHECK-LABEL: @from_double(
; CHECK: call i32 @llvm.fptosi.sat.i32.f64(double %x)
define i32 @from_double(double %x) {
  %whole = call i32 @llvm.fptosi.sat.i32.f64(double %x)
  ret i32 %whole
}

; CHECK-LABEL: @in_range(
; CHECK: fptosi float %x to i32
define i32 @in_range(float %x) {
  %whole = fptosi float %x to i32
  ret i32 %whole
}
