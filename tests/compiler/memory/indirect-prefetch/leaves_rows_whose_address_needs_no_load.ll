; An address that is computed from the counter alone is the hardware's to prefetch. One element is not what a
; simdgroup loads: only vectors are prefetched.
; RUN: kiln-opt --passes=indirect-prefetch %s | FileCheck %s

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer

; CHECK-LABEL: @from_the_counter(
; CHECK-NOT: @llvm.prefetch
; CHECK: ret void
define void @from_the_counter(ptr %launch, ptr %record, i32 %count, ptr %table, ptr %rows, ptr %out) {
entry:
  br label %loop
loop:
  %x = phi i32 [ 0, %entry ], [ %next, %loop ]
  %is_inside = icmp ult i32 %x, 4096
  %row.number = shl i32 %x, 5
  %row.index = sext i32 %row.number to i64
  %row = getelementptr float, ptr %rows, i64 %row.index
  %value = load <32 x float>, ptr %row, align 4
  %sum.at = getelementptr <32 x float>, ptr %out, i32 %x
  store volatile <32 x float> %value, ptr %sum.at, align 4
  %next = add i32 %x, 32
  %more = icmp ult i32 %next, %count
  br i1 %more, label %loop, label %exit
exit:
  ret void
}

; CHECK-LABEL: @scalar(
; CHECK-NOT: @llvm.prefetch
; CHECK: ret void
define void @scalar(ptr %launch, ptr %record, i32 %count, ptr %table, ptr %rows, ptr %out) {
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
  %value = load float, ptr %row, align 4
  %sum.at = getelementptr float, ptr %out, i64 %x.wide
  store volatile float %value, ptr %sum.at, align 4
  %next = add i32 %x, 32
  %more = icmp ult i32 %next, %count
  br i1 %more, label %loop, label %exit
exit:
  ret void
}

!0 = !{}
