; In a loop the address must advance by a constant, the trip count must be known, and caches must have room for all of it.
; A remark has the line of the access, if the IR has line tables.
; RUN: kiln-opt --passes=prefetch --remarks %s 2>&1 | FileCheck %s

; CHECK-NOT: @llvm.prefetch
; CHECK: remark: line 7: prefetch: not in this loop: how often it runs is not known
; CHECK-NEXT: remark: prefetch: not in this loop: the address does not grow by a constant
; CHECK-NEXT: remark: prefetch: not in this loop: it accesses more than the 65536 bytes that caches have room for
; CHECK-NEXT: remark: prefetch: not for this array: a threadgroup accesses 65600 bytes of it, and caches have room for 65536
; CHECK-NOT: remark:
define void @unknown_trip_count(ptr %data, ptr %record, ptr %sum, i64 %end) {
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
  %part = load <16 x float>, ptr %address, align 4, !dbg !5
  store volatile <16 x float> %part, ptr %sum
  %next = add i64 %at, 64
  %is_last = icmp eq i64 %next, %end
  br i1 %is_last, label %exit, label %loop
exit:
  ret void
}

define void @squares(ptr %data, ptr %record, ptr %sum) {
entry:
  %group.at = getelementptr i8, ptr %record, i64 12
  %group = load i32, ptr %group.at, !invariant.load !0
  %group.wide = zext i32 %group to i64
  %first = shl i64 %group.wide, 12
  br label %loop
loop:
  %at = phi i64 [ 0, %entry ], [ %next, %loop ]
  %square = mul i64 %at, %at
  %offset = add i64 %first, %square
  %address = getelementptr i8, ptr %data, i64 %offset
  %part = load <16 x float>, ptr %address, align 4
  store volatile <16 x float> %part, ptr %sum
  %next = add i64 %at, 64
  %is_last = icmp eq i64 %next, 4096
  br i1 %is_last, label %exit, label %loop
exit:
  ret void
}

define void @large_loop(ptr %data, ptr %record, ptr %sum) {
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
  %is_last = icmp eq i64 %next, 65600
  br i1 %is_last, label %exit, label %loop
exit:
  ret void
}

define <16400 x float> @large_access(ptr %data, ptr %record) {
  %group.at = getelementptr i8, ptr %record, i64 12
  %group = load i32, ptr %group.at, !invariant.load !0
  %group.wide = zext i32 %group to i64
  %first = shl i64 %group.wide, 16
  %address = getelementptr i8, ptr %data, i64 %first
  %page = load <16400 x float>, ptr %address, align 4
  ret <16400 x float> %page
}

!llvm.module.flags = !{!1}
!llvm.dbg.cu = !{!2}
!0 = !{}
!1 = !{i32 2, !"Debug Info Version", i32 3}
!2 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus, file: !3, emissionKind: LineTablesOnly)
!3 = !DIFile(filename: "body.metal", directory: "")
!4 = distinct !DISubprogram(name: "body", file: !3, line: 1, unit: !2, spFlags: DISPFlagDefinition)
!5 = !DILocation(line: 7, column: 3, scope: !4)
