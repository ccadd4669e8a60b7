; A store of 32 floats that need not begin at a register's alignment becomes one store for each register of 32 bytes, in
; the order of addresses. (With 64 bytes a register there are two.)
; RUN: kiln-opt --passes=order-stores %s | FileCheck %s
; RUN: kiln-opt --passes=order-stores --cpu=x86-64-v4 %s | FileCheck %s --check-prefix=V4

; CHECK-LABEL: @store(
; CHECK: %[[A:.*]] = shufflevector <32 x float> %value, <32 x float> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
; CHECK: store <8 x float> %[[A]], ptr %{{.*}}, align 4
; CHECK: %[[B:.*]] = shufflevector {{.*}} <8 x i32> <i32 8,
; CHECK: %[[PB:.*]] = getelementptr i8, ptr %p, i64 32
; CHECK: store <8 x float> %[[B]], ptr %[[PB]], align 4
; CHECK: %[[C:.*]] = shufflevector {{.*}} <8 x i32> <i32 16,
; CHECK: %[[PC:.*]] = getelementptr i8, ptr %p, i64 64
; CHECK: store <8 x float> %[[C]], ptr %[[PC]], align 4
; CHECK: %[[D:.*]] = shufflevector {{.*}} <8 x i32> <i32 24,
; CHECK: %[[PD:.*]] = getelementptr i8, ptr %p, i64 96
; CHECK: store <8 x float> %[[D]], ptr %[[PD]], align 4
; CHECK-NOT: store
; CHECK: ret void

; V4-LABEL: @store(
; V4: store <16 x float> {{.*}}, ptr %{{.*}}, align 4
; V4: %[[P:.*]] = getelementptr i8, ptr %p, i64 64
; V4: store <16 x float> {{.*}}, ptr %[[P]], align 4
; V4-NOT: store
; V4: ret void
define void @store(<32 x float> %value, ptr %p) {
  store <32 x float> %value, ptr %p, align 4
  ret void
}
