; Atomics add to 32 consecutive floats at an index from a table, which no hardware prefetcher predicts. The index is
; loaded for the simdgroup eight further on, too, under its own guard, and the lines of its 128 bytes are prefetched
; into the second-level cache: three, as they need not begin at a line.
; RUN: kiln-opt --passes=atomic-prefetch %s | FileCheck %s

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer
declare void @__kiln_add_to_row(ptr, ptr, ptr, i32, i64, i64, i64)

; CHECK-LABEL: @update(
; CHECK: %[[LATER_X:.+]] = add i32 %x, 256
; CHECK: %[[IS_INSIDE:.+]] = icmp ult i32 %[[LATER_X]], 4096
; CHECK: %[[WIDE:.+]] = zext i32 %[[LATER_X]] to i64
; CHECK: %[[ENTRY_AT:.+]] = getelementptr i32, ptr %table, i64 %[[WIDE]]
; CHECK: %[[GUARDED:.+]] = select i1 %[[IS_INSIDE]], ptr %[[ENTRY_AT]], ptr @__kiln_zeros.64
; CHECK: %[[ENTRY:.+]] = load i32, ptr %[[GUARDED]]
; CHECK: %[[INDEX:.+]] = sext i32 %[[ENTRY]] to i64
; CHECK: %[[ROW:.+]] = getelementptr float, ptr %rows, i64 %[[INDEX]]
; CHECK: %[[FIRST:.+]] = getelementptr i8, ptr %[[ROW]], i64 0
; CHECK: call void @llvm.prefetch.p0(ptr %[[FIRST]], i32 0, i32 2, i32 1)
; CHECK: %[[SECOND:.+]] = getelementptr i8, ptr %[[ROW]], i64 64
; CHECK: call void @llvm.prefetch.p0(ptr %[[SECOND]],
; CHECK: %[[LAST:.+]] = getelementptr i8, ptr %[[ROW]], i64 127
; CHECK: call void @llvm.prefetch.p0(ptr %[[LAST]],
; CHECK-NOT: call void @llvm.prefetch
; CHECK: call void @__kiln_add_to_row(ptr null, ptr %row,
define void @update(ptr %launch, ptr %record, ptr %frame, i32 %x, i32 %lanes, ptr %table, ptr %rows, ptr %operands) {
  %is_inside = icmp ult i32 %x, 4096
  %x.wide = zext i32 %x to i64
  %entry.at = getelementptr i32, ptr %table, i64 %x.wide
  %guarded = select i1 %is_inside, ptr %entry.at, ptr @__kiln_zeros.64
  %entry = load i32, ptr %guarded, align 4, !invariant.load !0
  %row.index = sext i32 %entry to i64
  %row = getelementptr float, ptr %rows, i64 %row.index
  call void @__kiln_add_to_row(ptr null, ptr %row, ptr %operands, i32 -1, i64 0, i64 2305843009213693952, i64 0)
  ret void
}

!0 = !{}
