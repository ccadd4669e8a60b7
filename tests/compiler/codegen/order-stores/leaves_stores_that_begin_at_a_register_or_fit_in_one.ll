; Borders: at an alignment of 32 bytes no line is shared, at 16 it may be; a vector of one register, or of registers and
; a part of one, is not split.
; RUN: kiln-opt --passes=order-stores %s | FileCheck %s

; CHECK-LABEL: @aligned(
; CHECK-NEXT: store <32 x float> %value, ptr %p, align 32
define void @aligned(<32 x float> %value, ptr %p) {
  store <32 x float> %value, ptr %p, align 32
  ret void
}

; CHECK-LABEL: @half_aligned(
; CHECK-COUNT-4: store <8 x float> {{.*}} align 16
define void @half_aligned(<32 x float> %value, ptr %p) {
  store <32 x float> %value, ptr %p, align 16
  ret void
}

; CHECK-LABEL: @one_register(
; CHECK-NEXT: store <8 x float> %value, ptr %p, align 4
define void @one_register(<8 x float> %value, ptr %p) {
  store <8 x float> %value, ptr %p, align 4
  ret void
}

; CHECK-LABEL: @one_and_a_half(
; CHECK-NEXT: store <12 x float> %value, ptr %p, align 4
define void @one_and_a_half(<12 x float> %value, ptr %p) {
  store <12 x float> %value, ptr %p, align 4
  ret void
}
