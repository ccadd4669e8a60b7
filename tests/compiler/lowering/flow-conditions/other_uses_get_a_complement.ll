; A use that is no branch gets the condition, or one complement of it at the beginning of the block.
; RUN: kiln-opt --passes=flow-conditions %s | FileCheck %s

; CHECK-LABEL: define void @complement(
; CHECK: join:
; CHECK-NEXT: %v = phi i32
; CHECK-NEXT: %[[NOT:.*]] = xor i1 %c, true
; CHECK-NEXT: %number = select i1 %[[NOT]], i32 %v, i32 7
; CHECK: store i1 %[[NOT]], ptr %x
; CHECK-NEXT: br i1 %c, label %end, label %second
define void @complement(ptr %x, ptr %y, i1 %c) {
entry:
  br i1 %c, label %first, label %join
first:
  br label %join
join:
  %v = phi i32 [ 1, %first ], [ 0, %entry ]
  %other = phi i1 [ false, %first ], [ true, %entry ]
  %number = select i1 %other, i32 %v, i32 7
  store i32 %number, ptr %y
  store i1 %other, ptr %x
  br i1 %other, label %second, label %end
second:
  store i32 2, ptr %y
  br label %end
end:
  ret void
}

; CHECK-LABEL: define void @condition(
; CHECK: join:
; CHECK-NEXT: store i1 %c, ptr %x
define void @condition(ptr %x, i1 %c) {
entry:
  br i1 %c, label %first, label %join
first:
  br label %join
join:
  %taken = phi i1 [ true, %first ], [ false, %entry ]
  store i1 %taken, ptr %x
  ret void
}

; A branch alone needs no complement.
; CHECK-LABEL: define void @branches_alone(
; CHECK-NOT: xor
; CHECK: br i1 %c, label %end, label %second, !prof ![[SWAPPED:.*]]
; CHECK: }
define void @branches_alone(ptr %x, i1 %c) {
entry:
  br i1 %c, label %first, label %join
first:
  br label %join
join:
  %other = phi i1 [ false, %first ], [ true, %entry ]
  br i1 %other, label %second, label %end, !prof !0
second:
  store i32 2, ptr %x
  br label %end
end:
  ret void
}

; CHECK: ![[SWAPPED]] = !{!"branch_weights", i32 1, i32 100}
!0 = !{!"branch_weights", i32 100, i32 1}
