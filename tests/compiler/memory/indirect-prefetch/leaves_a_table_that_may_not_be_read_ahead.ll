; A later iteration may not exist. Its row's number is not loaded without a bounds guard, nor where a thread may have
; written to the table meanwhile.
; RUN: kiln-opt --passes=indirect-prefetch %s | FileCheck %s
; RUN: kiln-opt --passes=indirect-prefetch --remarks %s 2>&1 | FileCheck %s --check-prefix=REMARK

; REMARK: remark: indirect-prefetch: not for this access: the index is loaded without a guard
; REMARK-NEXT: remark: indirect-prefetch: not for this access: the index is loaded from memory that may be written
; REMARK-NOT: remark:

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer

; CHECK-LABEL: @no_guard(
; CHECK-NOT: @llvm.prefetch
; CHECK: ret void
define void @no_guard(ptr %launch, ptr %record, i32 %count, ptr %table, ptr %rows, ptr %out) {
entry:
  br label %loop
loop:
  %x = phi i32 [ 0, %entry ], [ %next, %loop ]
  %is_inside = icmp ult i32 %x, 4096
  %x.wide = zext i32 %x to i64
  %entry.at = getelementptr i32, ptr %table, i64 %x.wide
  %row.number = load i32, ptr %entry.at, align 4, !invariant.load !0
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

; CHECK-LABEL: @may_be_written(
; CHECK-NOT: @llvm.prefetch
; CHECK: ret void
define void @may_be_written(ptr %launch, ptr %record, i32 %count, ptr %table, ptr %rows, ptr %out) {
entry:
  br label %loop
loop:
  %x = phi i32 [ 0, %entry ], [ %next, %loop ]
  %is_inside = icmp ult i32 %x, 4096
  %x.wide = zext i32 %x to i64
  %entry.at = getelementptr i32, ptr %table, i64 %x.wide
  %guarded = select i1 %is_inside, ptr %entry.at, ptr @__kiln_zeros.64
  %row.number = load i32, ptr %guarded, align 4
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
