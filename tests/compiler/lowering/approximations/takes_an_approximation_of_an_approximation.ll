; Where one approximation is an operand of the next, on either side, both become rounded values; an unused
; result leaves no instruction.
; RUN: kiln-opt --passes=approximations %s | FileCheck %s

declare float @__kiln_rsqrt(float, float)

; CHECK-LABEL: define float @chain(
; CHECK-NEXT: ret float %b
define float @chain(float %x, float %a, float %b) {
  %first = call float @__kiln_rsqrt(float %x, float %a)
  %second = call float @__kiln_rsqrt(float %first, float %b)
  ret float %second
}

; CHECK-LABEL: define float @rounded_by_another(
; CHECK-NEXT: ret float %a
define float @rounded_by_another(float %x, float %a) {
  %first = call float @__kiln_rsqrt(float %x, float %a)
  %second = call float @__kiln_rsqrt(float %x, float %first)
  ret float %second
}

; CHECK-LABEL: define void @unused(
; CHECK-NEXT: ret void
define void @unused(float %x, float %a) {
  %r = call float @__kiln_rsqrt(float %x, float %a)
  ret void
}
