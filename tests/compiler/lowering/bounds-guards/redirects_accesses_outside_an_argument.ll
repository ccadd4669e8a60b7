; One unsigned comparison with a number of the launch, the offsets at which an object of 4 bytes can start, decides
; whether an access reaches the argument. A load that fails it reads Kiln's zeros, a store writes a variable that is
; never read.
; RUN: kiln-opt --passes=bounds-guards --parameters=in:4,out:4 %s | FileCheck %s

; CHECK: [[ZEROS:@__kiln_zeros.*]] = internal constant [64 x i8] zeroinitializer

; CHECK-LABEL: define void @copy(
; CHECK-DAG: [[SINK:%.*]] = alloca [64 x i8], align 16
; CHECK-DAG: [[IN_STARTS:%.*]] = call i64 @llvm.usub.sat.i64(i64 %in_bytes, i64 3)
; CHECK-DAG: [[OUT_STARTS:%.*]] = call i64 @llvm.usub.sat.i64(i64 %out_bytes, i64 3)
; CHECK: %a = getelementptr
; CHECK-NOT: br
; CHECK: [[IS_IN:%.*]] = icmp ult i64 {{.*}}, [[IN_STARTS]]
; CHECK: [[SOURCE:%.*]] = select i1 [[IS_IN]], ptr %a, ptr [[ZEROS]]
; CHECK: %x = load float, ptr [[SOURCE]], align 4
; CHECK: [[IS_IN:%.*]] = icmp ult i64 {{.*}}, [[OUT_STARTS]]
; CHECK: [[TARGET:%.*]] = select i1 [[IS_IN]], ptr %b, ptr [[SINK]]
; CHECK: store float %x, ptr [[TARGET]], align 4
; CHECK-NOT: br
; CHECK: ret void
define void @copy(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out,
             i64 %out_first, i64 %out_bytes, ptr %thread, i64 %i) {
  %a = getelementptr float, ptr %in, i64 %i
  %x = load float, ptr %a, align 4
  %b = getelementptr float, ptr %out, i64 %i
  store float %x, ptr %b, align 4
  ret void
}

; Eight bytes can start at fewer offsets, also through a pointer to elements of four.
; CHECK-LABEL: define i64 @wider_than_an_element(
; CHECK: [[STARTS:%.*]] = call i64 @llvm.usub.sat.i64(i64 %in_bytes, i64 7)
; CHECK: icmp ult i64 {{.*}}, [[STARTS]]
; CHECK: %x = load i64
define i64 @wider_than_an_element(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out,
             i64 %out_first, i64 %out_bytes, ptr %thread, i64 %i) {
  %a = getelementptr float, ptr %in, i64 %i
  %x = load i64, ptr %a, align 4
  ret i64 %x
}

; Objects larger than the smallest zeros and sink get larger ones.
; CHECK-LABEL: define void @large_object(
; CHECK: [[SINK:%.*]] = alloca [128 x i8], align 16
; CHECK: select i1 {{.*}}, ptr %in, ptr @__kiln_zeros.128
; CHECK: select i1 {{.*}}, ptr %out, ptr [[SINK]]
define void @large_object(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out,
             i64 %out_first, i64 %out_bytes, ptr %thread) {
  %x = load <32 x float>, ptr %in, align 4
  store <32 x float> %x, ptr %out, align 4
  ret void
}
