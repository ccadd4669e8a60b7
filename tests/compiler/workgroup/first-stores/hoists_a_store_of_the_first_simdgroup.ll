; `if (simdgroup_index_in_threadgroup == 0) sums[0] = 0;` in a loop over eight simdgroups: the store goes before the
; loop, so that all iterations are alike. The check may be written either way round.
; RUN: kiln-opt --passes=first-stores %s | FileCheck %s

; CHECK-LABEL: @first_simdgroup(
; CHECK: entry:
; CHECK-NEXT: store float 0.000000e+00, ptr %sums
; CHECK-NEXT: br label %loop
; CHECK: first:
; CHECK-NEXT: br label %join
define void @first_simdgroup(ptr noalias %sums, ptr noalias %data) {
entry:
  br label %loop
loop:
  %number = phi i32 [ 0, %entry ], [ %next, %join ]
  %is_first = icmp eq i32 %number, 0
  br i1 %is_first, label %first, label %join
first:
  store float 0.0, ptr %sums
  br label %join
join:
  %element = getelementptr float, ptr %data, i32 %number
  store float 1.0, ptr %element
  %next = add nuw nsw i32 %number, 1
  %more = icmp ult i32 %next, 8
  br i1 %more, label %loop, label %exit
exit:
  ret void
}

; CHECK-LABEL: @not_another_one(
; CHECK: entry:
; CHECK-NEXT: store float 0.000000e+00, ptr %sums
; CHECK-NEXT: br label %loop
; CHECK: first:
; CHECK-NEXT: br label %join
define void @not_another_one(ptr noalias %sums, ptr noalias %data) {
entry:
  br label %loop
loop:
  %number = phi i32 [ 0, %entry ], [ %next, %join ]
  %is_first = icmp ne i32 %number, 0
  br i1 %is_first, label %join, label %first
first:
  store float 0.0, ptr %sums
  br label %join
join:
  %element = getelementptr float, ptr %data, i32 %number
  store float 1.0, ptr %element
  %next = add nuw nsw i32 %number, 1
  %more = icmp ult i32 %next, 8
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
