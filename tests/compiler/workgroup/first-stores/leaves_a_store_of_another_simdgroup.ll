; The second simdgroup stores, or the first two do: what the loop stored before must not be stored after it.
; RUN: kiln-opt --passes=first-stores %s | FileCheck %s

; CHECK-LABEL: @second(
; CHECK: entry:
; CHECK-NEXT: br label %loop
; CHECK: first:
; CHECK-NEXT: store float 0.000000e+00, ptr
define void @second(ptr noalias %sums, ptr noalias %data) {
entry:
  br label %loop
loop:
  %number = phi i32 [ 0, %entry ], [ %next, %join ]
  %is_first = icmp eq i32 %number, 1
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

; CHECK-LABEL: @first_two(
; CHECK: entry:
; CHECK-NEXT: br label %loop
; CHECK: first:
; CHECK-NEXT: store float 0.000000e+00, ptr
define void @first_two(ptr noalias %sums, ptr noalias %data) {
entry:
  br label %loop
loop:
  %number = phi i32 [ 0, %entry ], [ %next, %join ]
  %is_first = icmp ult i32 %number, 2
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

; What decides is not known.
; CHECK-LABEL: @some(
; CHECK: entry:
; CHECK-NEXT: br label %loop
; CHECK: first:
; CHECK-NEXT: store float 0.000000e+00, ptr
define void @some(ptr noalias %sums, ptr noalias %data, i32 %which) {
entry:
  br label %loop
loop:
  %number = phi i32 [ 0, %entry ], [ %next, %join ]
  %is_first = icmp eq i32 %number, %which
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
