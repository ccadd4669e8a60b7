; A later simdgroup may not exist. Its index is not loaded without a bounds guard, nor behind a branch that this one
; took, nor where a thread may have written to the table.
; RUN: kiln-opt --passes=atomic-prefetch %s | FileCheck %s

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer
declare void @__kiln_add_to_row(ptr, ptr, ptr, i32, i64, i64, i64)

; CHECK-LABEL: @no_guard(
; CHECK-NOT: @llvm.prefetch
; CHECK: ret void
define void @no_guard(ptr %launch, ptr %record, ptr %frame, i32 %x, i32 %lanes, ptr %table, ptr %rows, ptr %operands) {
  %is_inside = icmp ult i32 %x, 4096
  %x.wide = zext i32 %x to i64
  %entry.at = getelementptr i32, ptr %table, i64 %x.wide
  %entry = load i32, ptr %entry.at, align 4, !invariant.load !0
  %row.index = sext i32 %entry to i64
  %row = getelementptr float, ptr %rows, i64 %row.index
  call void @__kiln_add_to_row(ptr null, ptr %row, ptr %operands, i32 -1, i64 0, i64 2305843009213693952, i64 0)
  ret void
}

; CHECK-LABEL: @behind_a_branch(
; CHECK-NOT: @llvm.prefetch
; CHECK: ret void
define void @behind_a_branch(ptr %launch, ptr %record, ptr %frame, i32 %x, i32 %lanes, ptr %table, ptr %rows, ptr %operands, i1 %condition) {
  br i1 %condition, label %update, label %end
update:
  %is_inside = icmp ult i32 %x, 4096
  %x.wide = zext i32 %x to i64
  %entry.at = getelementptr i32, ptr %table, i64 %x.wide
  %guarded = select i1 %is_inside, ptr %entry.at, ptr @__kiln_zeros.64
  %entry = load i32, ptr %guarded, align 4, !invariant.load !0
  %row.index = sext i32 %entry to i64
  %row = getelementptr float, ptr %rows, i64 %row.index
  call void @__kiln_add_to_row(ptr null, ptr %row, ptr %operands, i32 -1, i64 0, i64 2305843009213693952, i64 0)
  br label %end
end:
  ret void
}

; CHECK-LABEL: @may_be_written(
; CHECK-NOT: @llvm.prefetch
; CHECK: ret void
define void @may_be_written(ptr %launch, ptr %record, ptr %frame, i32 %x, i32 %lanes, ptr %table, ptr %rows, ptr %operands) {
  %is_inside = icmp ult i32 %x, 4096
  %x.wide = zext i32 %x to i64
  %entry.at = getelementptr i32, ptr %table, i64 %x.wide
  %guarded = select i1 %is_inside, ptr %entry.at, ptr @__kiln_zeros.64
  %entry = load i32, ptr %guarded, align 4
  %row.index = sext i32 %entry to i64
  %row = getelementptr float, ptr %rows, i64 %row.index
  call void @__kiln_add_to_row(ptr null, ptr %row, ptr %operands, i32 -1, i64 0, i64 2305843009213693952, i64 0)
  ret void
}

!0 = !{}
