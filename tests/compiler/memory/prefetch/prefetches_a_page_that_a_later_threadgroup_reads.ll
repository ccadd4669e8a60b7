; A threadgroup that reads 4 KiB or more in a row stops the hardware prefetcher at a page's end. Each line is
; prefetched for the second next threadgroup in x, if the grid has several in x. 63 lines are left to the hardware.
; RUN: kiln-opt --passes=prefetch %s | FileCheck %s

; CHECK-LABEL: @page(
; CHECK: %group = load i32, ptr %group.at
; CHECK: %[[COUNT_AT:.+]] = getelementptr i8, ptr %record, i64 60
; CHECK: %[[COUNT:.+]] = load i32, ptr %[[COUNT_AT]]
; CHECK: %[[IS_ONE:.+]] = icmp eq i32 %[[COUNT]], 1
; CHECK: %[[SEVERAL:.+]] = xor i1 %[[IS_ONE]], true
; CHECK: %[[DISTANCE:.+]] = select i1 %[[SEVERAL]], i32 2, i32 0
; CHECK: %[[LATER:.+]] = add i32 %group, %[[DISTANCE]]
; CHECK: %[[LATER_WIDE:.+]] = zext i32 %[[LATER]] to i64
; CHECK: %[[LATER_FIRST:.+]] = shl i64 %[[LATER_WIDE]], 12
; CHECK: loop:
; CHECK: %[[OFFSET:.+]] = add i64 %[[LATER_FIRST]], %at
; CHECK: %[[ADDRESS:.+]] = getelementptr i8, ptr %data, i64 %[[OFFSET]]
; CHECK: %[[LINE:.+]] = getelementptr i8, ptr %[[ADDRESS]], i64 0
; CHECK: call void @llvm.prefetch.p0(ptr %[[LINE]], i32 0, i32 2, i32 1)
; CHECK-NEXT: %part = load <16 x float>
; CHECK-NOT: @llvm.prefetch
define void @page(ptr %data, ptr %record, ptr %sum) {
entry:
  %group.at = getelementptr i8, ptr %record, i64 12
  %group = load i32, ptr %group.at, !invariant.load !0
  %group.wide = zext i32 %group to i64
  %first = shl i64 %group.wide, 12
  br label %loop
loop:
  %at = phi i64 [ 0, %entry ], [ %next, %loop ]
  %offset = add i64 %first, %at
  %address = getelementptr i8, ptr %data, i64 %offset
  %part = load <16 x float>, ptr %address, align 4
  store volatile <16 x float> %part, ptr %sum
  %next = add i64 %at, 64
  %is_last = icmp eq i64 %next, 4096
  br i1 %is_last, label %exit, label %loop
exit:
  ret void
}

; CHECK-LABEL: @one_line_less(
; CHECK-NOT: @llvm.prefetch
; CHECK: ret void
define void @one_line_less(ptr %data, ptr %record, ptr %sum) {
entry:
  %group.at = getelementptr i8, ptr %record, i64 12
  %group = load i32, ptr %group.at, !invariant.load !0
  %group.wide = zext i32 %group to i64
  %first = shl i64 %group.wide, 12
  br label %loop
loop:
  %at = phi i64 [ 0, %entry ], [ %next, %loop ]
  %offset = add i64 %first, %at
  %address = getelementptr i8, ptr %data, i64 %offset
  %part = load <16 x float>, ptr %address, align 4
  store volatile <16 x float> %part, ptr %sum
  %next = add i64 %at, 64
  %is_last = icmp eq i64 %next, 4032
  br i1 %is_last, label %exit, label %loop
exit:
  ret void
}

!0 = !{}
