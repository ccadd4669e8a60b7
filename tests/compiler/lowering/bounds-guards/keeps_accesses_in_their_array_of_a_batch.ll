; A batch has the extent of one of its arrays. Offsets count from the array that an access is in, so that it reaches no
; neighbor, and a store there is no store through an input.
; RUN: kiln-opt --passes=bounds-guards --parameters=batch-of-in:4,batch-of-out:4 %s | FileCheck %s

; CHECK-LABEL: define void @copy(
; CHECK-DAG: [[READABLE:%.*]] = call i64 @llvm.usub.sat.i64(i64 %in_bytes, i64 3)
; CHECK-DAG: [[WRITABLE:%.*]] = call i64 @llvm.usub.sat.i64(i64 %out_bytes, i64 3)
; CHECK: [[IN:%.*]] = ptrtoint ptr %x to i64
; CHECK: icmp ult i64 {{.*}}, [[READABLE]]
; CHECK: select i1 {{.*}}, ptr %from, ptr @__kiln_zeros
; CHECK: ptrtoint ptr %y to i64
; CHECK: icmp ult i64 {{.*}}, [[WRITABLE]]
; CHECK-NOT: ptrtoint ptr %in
; CHECK-NOT: ptrtoint ptr %out
define void @copy(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out, i64 %out_first, i64 %out_bytes, ptr %thread,
                  i64 %batch, i64 %i) {
  %x = call ptr @__kiln_element(ptr %in, i64 %batch)
  %y = call ptr @__kiln_element(ptr %out, i64 %batch)
  %from = getelementptr i32, ptr %x, i64 %i
  %value = load i32, ptr %from
  %to = getelementptr i32, ptr %y, i64 %i
  store i32 %value, ptr %to
  ret void
}

declare ptr @__kiln_element(ptr, i64)
