; None of an input's bytes are writable: no offset passes the comparison of a store or an atomic, while loads of the
; same place are compared with the input's size.
; RUN: kiln-opt --passes=bounds-guards --parameters=in:4,out:4 %s | FileCheck %s

; CHECK-LABEL: define void @store(
; CHECK: [[NEVER:%.*]] = icmp ult i64 {{.*}}, 0
; CHECK: [[TARGET:%.*]] = select i1 [[NEVER]], ptr %a, ptr {{%.*}}
; CHECK: store i32 1, ptr [[TARGET]]
define void @store(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out,
             i64 %out_first, i64 %out_bytes, ptr %thread, i64 %i) {
  %a = getelementptr i32, ptr %in, i64 %i
  store i32 1, ptr %a, align 4
  ret void
}

; CHECK-LABEL: define void @atomic(
; CHECK: [[NEVER:%.*]] = icmp ult i64 {{.*}}, 0
; CHECK: br i1 [[NEVER]]
; CHECK: atomicrmw add ptr %in
define void @atomic(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out, i64 %out_first, i64 %out_bytes, ptr %thread) {
  %old = atomicrmw add ptr %in, i32 1 monotonic
  ret void
}

; CHECK-LABEL: define i32 @load(
; CHECK: [[STARTS:%.*]] = call i64 @llvm.usub.sat.i64(i64 %in_bytes, i64 3)
; CHECK: icmp ult i64 {{.*}}, [[STARTS]]
define i32 @load(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out, i64 %out_first, i64 %out_bytes, ptr %thread, i64 %i) {
  %a = getelementptr i32, ptr %in, i64 %i
  %x = load i32, ptr %a, align 4
  ret i32 %x
}
