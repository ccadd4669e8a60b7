; A pointer from an array of pointers may be any whose address was stored. Its access must lie inside one of those: here
; the output alone, for the input's address is in no memory. A null pointer has no bytes at all.
; RUN: kiln-opt --passes=bounds-guards --parameters=in:4,out:4 %s | FileCheck %s

; CHECK-LABEL: define i32 @table_of_pointers(
; CHECK-NOT: usub.sat.i64(i64 %in_bytes
; CHECK: [[STARTS:%.*]] = call i64 @llvm.usub.sat.i64(i64 %out_bytes, i64 3)
; CHECK: %p = load ptr, ptr %slot
; CHECK: [[IN_OUT:%.*]] = icmp ult i64 {{.*}}, [[STARTS]]
; CHECK: [[IN_ANY:%.*]] = or i1 false, [[IN_OUT]]
; CHECK: [[IS_IN:%.*]] = select i1 true, i1 [[IN_ANY]],
; CHECK: [[SOURCE:%.*]] = select i1 [[IS_IN]], ptr %p, ptr @__kiln_zeros
; CHECK: %x = load i32, ptr [[SOURCE]]
define i32 @table_of_pointers(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out,
             i64 %out_first, i64 %out_bytes, ptr %thread, i64 %i) {
  %table = alloca [2 x ptr]
  store ptr %out, ptr %table
  %m = and i64 %i, 1
  %slot = getelementptr [2 x ptr], ptr %table, i64 0, i64 %m
  %p = load ptr, ptr %slot
  %x = load i32, ptr %p
  ret i32 %x
}

; CHECK-LABEL: define i32 @null(
; CHECK: %x = load i32, ptr @__kiln_zeros
define i32 @null(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out, i64 %out_first, i64 %out_bytes, ptr %thread) {
  %x = load i32, ptr null
  ret i32 %x
}
