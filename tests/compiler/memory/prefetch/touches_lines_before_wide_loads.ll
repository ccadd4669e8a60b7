; A load that fills a 64-byte register from each line lets a processor run far ahead of its data. Two scalar loads of
; the line before it slow it down, in its first half and in its second. Smaller registers need none.
; RUN: kiln-opt --passes=prefetch --cpu=x86-64-v4 %s | FileCheck %s --check-prefixes=CHECK,AVX512
; RUN: kiln-opt --passes=prefetch --cpu=x86-64-v3 %s | FileCheck %s --check-prefixes=CHECK,AVX2

; CHECK-LABEL: @page(
; CHECK: loop:
; AVX512: %[[FIRST:.+]] = getelementptr i8, ptr %address, i64 0
; AVX512: load volatile i32, ptr %[[FIRST]], align 1
; AVX512: %[[SECOND:.+]] = getelementptr i8, ptr %address, i64 32
; AVX512: load volatile i32, ptr %[[SECOND]], align 1
; AVX2-NOT: load volatile
; CHECK: call void @llvm.prefetch.p0(
; AVX2-NOT: load volatile
; CHECK: %part = load <16 x float>
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

!0 = !{}
