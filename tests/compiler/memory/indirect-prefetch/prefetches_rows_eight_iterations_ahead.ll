; A row's number is loaded from a table, so no hardware prefetcher predicts where the row lies. The computation from
; the counter to the row's address is repeated for eight iterations of 32 later, with the guard for that iteration,
; and the row's two lines are prefetched into the first-level cache.
; RUN: kiln-opt --passes=indirect-prefetch %s | FileCheck %s

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer

; CHECK-LABEL: @rows(
; CHECK: %x = phi i32
; CHECK: %[[LATER_X:.+]] = add i32 %x, 256
; CHECK: %[[IS_INSIDE:.+]] = icmp ult i32 %[[LATER_X]], 4096
; CHECK: %[[WIDE:.+]] = zext i32 %[[LATER_X]] to i64
; CHECK: %[[ENTRY_AT:.+]] = getelementptr i32, ptr %table, i64 %[[WIDE]]
; CHECK: %[[GUARDED:.+]] = select i1 %[[IS_INSIDE]], ptr %[[ENTRY_AT]], ptr @__kiln_zeros.64
; CHECK: %[[NUMBER:.+]] = load i32, ptr %[[GUARDED]]
; CHECK: %[[INDEX:.+]] = sext i32 %[[NUMBER]] to i64
; CHECK: %[[ROW:.+]] = getelementptr float, ptr %rows, i64 %[[INDEX]]
; CHECK: %[[FIRST:.+]] = getelementptr i8, ptr %[[ROW]], i64 0
; CHECK: call void @llvm.prefetch.p0(ptr %[[FIRST]], i32 0, i32 3, i32 1)
; CHECK: %[[SECOND:.+]] = getelementptr i8, ptr %[[ROW]], i64 64
; CHECK: call void @llvm.prefetch.p0(ptr %[[SECOND]], i32 0, i32 3, i32 1)
; CHECK-NOT: call void @llvm.prefetch
; CHECK: load <32 x float>, ptr %row
define void @rows(ptr %launch, ptr %record, i32 %count, ptr %table, ptr %rows, ptr %out) {
entry:
  br label %loop
loop:
  %x = phi i32 [ 0, %entry ], [ %next, %loop ]
  %is_inside = icmp ult i32 %x, 4096
  %x.wide = zext i32 %x to i64
  %entry.at = getelementptr i32, ptr %table, i64 %x.wide
  %guarded = select i1 %is_inside, ptr %entry.at, ptr @__kiln_zeros.64
  %row.number = load i32, ptr %guarded, align 4, !invariant.load !0
  %row.index = sext i32 %row.number to i64
  %row = getelementptr float, ptr %rows, i64 %row.index
  %value = load <32 x float>, ptr %row, align 4
  %sum.at = getelementptr <32 x float>, ptr %out, i64 %x.wide
  store volatile <32 x float> %value, ptr %sum.at, align 4
  %next = add i32 %x, 32
  %more = icmp ult i32 %next, %count
  br i1 %more, label %loop, label %exit
exit:
  ret void
}

!0 = !{}
