; Rows that follow one another are the hardware's to prefetch.
; RUN: kiln-opt --passes=atomic-prefetch %s | FileCheck %s

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer
declare void @__kiln_add_to_row(ptr, ptr, ptr, i32, i64, i64, i64)

; CHECK-LABEL: @update(
; CHECK-NOT: @llvm.prefetch
; CHECK: ret void
define void @update(ptr %launch, ptr %record, ptr %frame, i32 %x, i32 %lanes, ptr %table, ptr %rows, ptr %operands) {
  %entry = shl i32 %x, 5
  %row.index = sext i32 %entry to i64
  %row = getelementptr float, ptr %rows, i64 %row.index
  call void @__kiln_add_to_row(ptr null, ptr %row, ptr %operands, i32 -1, i64 0, i64 2305843009213693952, i64 0)
  ret void
}

!0 = !{}
