; Each simdgroup reads or writes the stored address, too, before the first one stores to it: that order matters.
; RUN: kiln-opt --passes=first-stores %s | FileCheck %s

; CHECK-LABEL: @read(
; CHECK: entry:
; CHECK-NEXT: br label %loop
; CHECK: first:
; CHECK-NEXT: store float 0.000000e+00, ptr
define void @read(ptr noalias %sums, ptr noalias %data) {
entry:
  br label %loop
loop:
  %number = phi i32 [ 0, %entry ], [ %next, %join ]
  %old = load float, ptr %sums
  store float %old, ptr %data
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

; CHECK-LABEL: @written(
; CHECK: entry:
; CHECK-NEXT: br label %loop
; CHECK: first:
; CHECK-NEXT: store float 0.000000e+00, ptr
define void @written(ptr noalias %sums, ptr noalias %data) {
entry:
  br label %loop
loop:
  %number = phi i32 [ 0, %entry ], [ %next, %join ]
  store float 2.0, ptr %sums
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
