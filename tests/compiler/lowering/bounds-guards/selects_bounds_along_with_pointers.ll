; Where a pointer is one of two arguments', its bounds are chosen as it is: at a select, and at a phi. A pointer that a
; loop advances has one origin, whose bounds hold unchanged.
; RUN: kiln-opt --passes=bounds-guards --parameters=in:4,out:4 %s | FileCheck %s

; CHECK-LABEL: define i32 @select(
; CHECK-DAG: [[BASE:%.*]] = select i1 %c, ptr %in, ptr %out
; CHECK-DAG: [[BYTES:%.*]] = select i1 %c, i64 %in_bytes, i64 %out_bytes
; CHECK: %p = select i1 %c, ptr %in, ptr %out
; CHECK-DAG: ptrtoint ptr [[BASE]] to i64
; CHECK-DAG: [[STARTS:%.*]] = call i64 @llvm.usub.sat.i64(i64 [[BYTES]], i64 3)
; CHECK: icmp ult i64 {{.*}}, [[STARTS]]
; CHECK: select i1 {{.*}}, ptr %a, ptr @__kiln_zeros
define i32 @select(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out,
             i64 %out_first, i64 %out_bytes, ptr %thread, i64 %i, i1 %c) {
  %p = select i1 %c, ptr %in, ptr %out
  %a = getelementptr i32, ptr %p, i64 %i
  %x = load i32, ptr %a
  ret i32 %x
}

; The store may write only if the pointer is the output's.
; CHECK-LABEL: define void @phi(
; CHECK: end:
; CHECK-DAG: [[BASE:%.*]] = phi ptr [ %in, %entry ], [ %out, %other ]
; CHECK-DAG: [[WRITABLE:%.*]] = phi i64 [ 0, %entry ], [ %out_bytes, %other ]
; CHECK-DAG: %p = phi ptr [ %in, %entry ], [ %out, %other ]
; CHECK: [[STARTS:%.*]] = call i64 @llvm.usub.sat.i64(i64 [[WRITABLE]], i64 3)
; CHECK: icmp ult i64 {{.*}}, [[STARTS]]
; CHECK: store i32 1
define void @phi(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out, i64 %out_first, i64 %out_bytes, ptr %thread, i1 %c) {
entry:
  br i1 %c, label %end, label %other

other:
  br label %end

end:
  %p = phi ptr [ %in, %entry ], [ %out, %other ]
  store i32 1, ptr %p
  ret void
}

; CHECK-LABEL: define void @loop(
; CHECK: [[STARTS:%.*]] = call i64 @llvm.usub.sat.i64(i64 %out_bytes, i64 3)
; CHECK: loop:
; CHECK-NEXT: %p = phi ptr [ %out, %entry ], [ %next, %loop ]
; CHECK-NOT: phi
; CHECK: ptrtoint ptr %out to i64
; CHECK: icmp ult i64 {{.*}}, [[STARTS]]
define void @loop(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out,
             i64 %out_first, i64 %out_bytes, ptr %thread, ptr %end) {
entry:
  br label %loop

loop:
  %p = phi ptr [ %out, %entry ], [ %next, %loop ]
  store i32 1, ptr %p
  %next = getelementptr i32, ptr %p, i64 1
  %c = icmp eq ptr %next, %end
  br i1 %c, label %exit, label %loop

exit:
  ret void
}
