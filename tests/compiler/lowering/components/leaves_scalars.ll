; Code without vectors stays as it is, arrays of numbers in memory included.
; RUN: kiln-opt --passes=components %s | FileCheck %s

; CHECK-LABEL: define float @f(
; CHECK-NEXT: %v = alloca [4 x float]
; CHECK-NEXT: %a = getelementptr [4 x float], ptr %v, i64 0, i64 %i
; CHECK-NEXT: store float %x, ptr %a
; CHECK-NEXT: %y = load float, ptr %v
; CHECK-NEXT: %z = fmul float %y, %x
; CHECK-NEXT: ret float %z
define float @f(float %x, i64 %i) {
  %v = alloca [4 x float]
  %a = getelementptr [4 x float], ptr %v, i64 0, i64 %i
  store float %x, ptr %a
  %y = load float, ptr %v
  %z = fmul float %y, %x
  ret float %z
}
