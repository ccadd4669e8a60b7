; A volatile store stays one store, and elements that are not whole bytes, or are pointers, are not split.
; RUN: kiln-opt --passes=order-stores %s | FileCheck %s

; CHECK-LABEL: @volatile(
; CHECK-NEXT: store volatile <32 x float> %value, ptr %p, align 4
define void @volatile(<32 x float> %value, ptr %p) {
  store volatile <32 x float> %value, ptr %p, align 4
  ret void
}

; CHECK-LABEL: @bits(
; CHECK-NEXT: store <1024 x i1> %value, ptr %p, align 4
define void @bits(<1024 x i1> %value, ptr %p) {
  store <1024 x i1> %value, ptr %p, align 4
  ret void
}

; CHECK-LABEL: @pointers(
; CHECK-NEXT: store <32 x ptr> %value, ptr %p, align 8
define void @pointers(<32 x ptr> %value, ptr %p) {
  store <32 x ptr> %value, ptr %p, align 8
  ret void
}
