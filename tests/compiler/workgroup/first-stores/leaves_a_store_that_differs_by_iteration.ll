; The stored value is computed in the loop: it is not available before it.
; RUN: kiln-opt --passes=first-stores %s | FileCheck %s

; CHECK-LABEL: @sum(
; CHECK: entry:
; CHECK-NEXT: br label %loop
; CHECK: first:
; CHECK-NEXT: store float %value, ptr
define void @sum(ptr noalias %sums, ptr noalias %data) {
entry:
  br label %loop
loop:
  %number = phi i32 [ 0, %entry ], [ %next, %join ]
  %value = load float, ptr %data
  %is_first = icmp eq i32 %number, 0
  br i1 %is_first, label %first, label %join
first:
  store float %value, ptr %sums
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
