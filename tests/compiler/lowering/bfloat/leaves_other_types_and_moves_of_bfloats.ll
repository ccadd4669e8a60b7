; Arithmetic of halves and floats stays, and so do operations that only move bfloats: those are another pass's, after
; the optimiser.
; RUN: kiln-opt --passes=bfloat %s | FileCheck %s

; CHECK-LABEL: define float @other_types(
; CHECK-NEXT: %s = fadd half %h, %h
; CHECK-NEXT: %f = fpext half %s to float
; CHECK-NEXT: %p = fmul float %f, %x
; CHECK-NEXT: ret float %p
define float @other_types(half %h, float %x) {
  %s = fadd half %h, %h
  %f = fpext half %s to float
  %p = fmul float %f, %x
  ret float %p
}

; CHECK-LABEL: define void @moves(
; CHECK-NEXT: %x = load bfloat, ptr %p
; CHECK-NEXT: %y = select i1 %c, bfloat %x, bfloat 0xR3F80
; CHECK-NEXT: store bfloat %y, ptr %q
; CHECK-NEXT: ret void
define void @moves(ptr %p, ptr %q, i1 %c) {
  %x = load bfloat, ptr %p
  %y = select i1 %c, bfloat %x, bfloat 0xR3F80
  store bfloat %y, ptr %q
  ret void
}
