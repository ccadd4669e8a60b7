; The same loads without an atomic: the processor looks ahead by itself.
; RUN: kiln-opt --passes=atomic-prefetch %s | FileCheck %s

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer
declare void @__kiln_add_to_row(ptr, ptr, ptr, i32, i64, i64, i64)

; CHECK-LABEL: @copy(
; CHECK-NOT: @llvm.prefetch
; CHECK: ret void
define void @copy(ptr %launch, ptr %record, ptr %frame, i32 %x, i32 %lanes, ptr %table, ptr %rows, ptr %operands) {
  %is_inside = icmp ult i32 %x, 4096
  %x.wide = zext i32 %x to i64
  %entry.at = getelementptr i32, ptr %table, i64 %x.wide
  %guarded = select i1 %is_inside, ptr %entry.at, ptr @__kiln_zeros.64
  %entry = load i32, ptr %guarded, align 4, !invariant.load !0
  %row.index = sext i32 %entry to i64
  %row = getelementptr float, ptr %rows, i64 %row.index
  %value = load <32 x float>, ptr %row, align 4
  store <32 x float> %value, ptr %operands, align 4
  ret void
}

!0 = !{}
