; Whether the first iteration alone stores is only known for a constant number of simdgroups, and only matters for
; two or more.
; RUN: kiln-opt --passes=first-stores %s | FileCheck %s

; CHECK-LABEL: @unknown(
; CHECK: entry:
; CHECK-NEXT: br label %loop
; CHECK: first:
; CHECK-NEXT: store float 0.000000e+00, ptr
define void @unknown(ptr noalias %sums, ptr noalias %data, i32 %count) {
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
  %more = icmp ult i32 %next, %count
  br i1 %more, label %loop, label %exit
exit:
  ret void
}

; CHECK-LABEL: @one(
; CHECK: entry:
; CHECK-NEXT: br label %loop
; CHECK: first:
; CHECK-NEXT: store float 0.000000e+00, ptr
define void @one(ptr noalias %sums, ptr noalias %data) {
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
  %more = icmp ult i32 %next, 1
  br i1 %more, label %loop, label %exit
exit:
  ret void
}

; CHECK-LABEL: @two(
; CHECK: entry:
; CHECK-NEXT: store float 0.000000e+00, ptr %sums
; CHECK-NEXT: br label %loop
; CHECK: first:
; CHECK-NEXT: br label %join
define void @two(ptr noalias %sums, ptr noalias %data) {
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
  %more = icmp ult i32 %next, 2
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
