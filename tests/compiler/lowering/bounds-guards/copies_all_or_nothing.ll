; A copy to outside does nothing; a copy from outside gives zeros. The length need not be a constant.
; RUN: kiln-opt --passes=bounds-guards --parameters=in:4,out:4 %s | FileCheck %s

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; CHECK-LABEL: define void @copy(
; CHECK-DAG: [[IN_STARTS:%.*]] = call i64 @llvm.usub.sat.i64(i64 %in_bytes, i64 15)
; CHECK-DAG: [[OUT_STARTS:%.*]] = call i64 @llvm.usub.sat.i64(i64 %out_bytes, i64 15)
; CHECK: [[TO_INSIDE:%.*]] = icmp ult i64 {{.*}}, [[OUT_STARTS]]
; CHECK: br i1 [[TO_INSIDE]], label %[[WRITES:.*]], label %[[END:.*]]
; CHECK: [[WRITES]]:
; CHECK: [[FROM_INSIDE:%.*]] = icmp ult i64 {{.*}}, [[IN_STARTS]]
; CHECK: br i1 [[FROM_INSIDE]], label %[[COPIES:.*]], label %[[CLEARS:.*]]
; CHECK: [[COPIES]]:
; CHECK: call void @llvm.memcpy.p0.p0.i64({{.*}}%out, {{.*}}%in, i64 16, i1 false)
; CHECK: [[CLEARS]]:
; CHECK: call void @llvm.memset.p0.i64({{.*}}%out, i8 0, i64 16, i1 false)
; CHECK: [[END]]:
; CHECK: ret void
define void @copy(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out, i64 %out_first, i64 %out_bytes, ptr %thread) {
  call void @llvm.memcpy.p0.p0.i64(ptr align 4 %out, ptr align 4 %in, i64 16, i1 false)
  ret void
}

; CHECK-LABEL: define void @clear(
; CHECK: [[LAST:%.*]] = sub i64 %n, 1
; CHECK: [[STARTS:%.*]] = call i64 @llvm.usub.sat.i64(i64 %out_bytes, i64 [[LAST]])
; CHECK: [[IS_IN:%.*]] = icmp ult i64 {{.*}}, [[STARTS]]
; CHECK: br i1 [[IS_IN]]
; CHECK: call void @llvm.memset
define void @clear(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out,
             i64 %out_first, i64 %out_bytes, ptr %thread, i64 %n) {
  call void @llvm.memset.p0.i64(ptr align 4 %out, i8 0, i64 %n, i1 false)
  ret void
}
