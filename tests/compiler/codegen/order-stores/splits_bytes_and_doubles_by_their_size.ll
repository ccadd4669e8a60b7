; A register holds as many elements as fit: 32 bytes, or 4 doubles. The parts' alignment follows from that of the whole,
; and they keep its metadata.
; RUN: kiln-opt --passes=order-stores %s | FileCheck %s

; CHECK-LABEL: @bytes(
; CHECK: store <32 x i8> {{.*}}, ptr %{{.*}}, align 16, !nontemporal
; CHECK: store <32 x i8> {{.*}}, ptr %{{.*}}, align 16, !nontemporal
; CHECK-NOT: store
; CHECK: ret void
define void @bytes(<64 x i8> %value, ptr %p) {
  store <64 x i8> %value, ptr %p, align 16, !nontemporal !0
  ret void
}

; CHECK-LABEL: @doubles(
; CHECK: store <4 x double> {{.*}}, ptr %{{.*}}, align 8
; CHECK: store <4 x double> {{.*}}, ptr %{{.*}}, align 8
; CHECK-NOT: store
; CHECK: ret void
define void @doubles(<8 x double> %value, ptr %p) {
  store <8 x double> %value, ptr %p, align 8
  ret void
}

!0 = !{i32 1}
