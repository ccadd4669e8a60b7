; Halves and floats, and integers that are already bits of bfloats, stay as they are.
; RUN: kiln-opt --passes=bfloat-conversions %s | FileCheck %s

; CHECK-LABEL: define void @halves(
; CHECK-NEXT: %x = load half, ptr %p
; CHECK-NEXT: %bits = bitcast half %x to i16
; CHECK-NEXT: %f = fpext half %x to float
; CHECK-NEXT: %s = select i1 %c, float %f, float 1.000000e+00
; CHECK-NEXT: store float %s, ptr %out
; CHECK-NEXT: store i16 %bits, ptr %p
; CHECK-NEXT: ret void
define void @halves(ptr %p, ptr %out, i1 %c) {
  %x = load half, ptr %p
  %bits = bitcast half %x to i16
  %f = fpext half %x to float
  %s = select i1 %c, float %f, float 1.0
  store float %s, ptr %out
  store i16 %bits, ptr %p
  ret void
}
