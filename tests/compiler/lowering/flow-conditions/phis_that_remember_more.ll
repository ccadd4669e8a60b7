; Phis that do not say only how their block was reached stay.
; RUN: kiln-opt --passes=flow-conditions %s | FileCheck %s

; What the side computes.
; CHECK-LABEL: define void @not_constant(
; CHECK: %both = phi i1 [ %d, %first ], [ false, %entry ]
; CHECK: %either = phi i1 [ false, %first ], [ %d, %entry ]
define void @not_constant(ptr %x, i1 %c, i1 %d) {
entry:
  br i1 %c, label %first, label %join
first:
  br label %join
join:
  %both = phi i1 [ %d, %first ], [ false, %entry ]
  %either = phi i1 [ false, %first ], [ %d, %entry ]
  store i1 %both, ptr %x
  store i1 %either, ptr %x
  ret void
}

; CHECK-LABEL: define void @equal(
; CHECK: phi i1 [ true, %first ], [ true, %entry ]
; CHECK: phi i1 [ poison, %first ], [ true, %entry ]
define void @equal(ptr %x, i1 %c) {
entry:
  br i1 %c, label %first, label %join
first:
  br label %join
join:
  %always = phi i1 [ true, %first ], [ true, %entry ]
  %dead = phi i1 [ poison, %first ], [ true, %entry ]
  store i1 %always, ptr %x
  store i1 %dead, ptr %x
  ret void
}

; CHECK-LABEL: define void @bytes(
; CHECK: phi i8 [ 1, %first ], [ 0, %entry ]
define void @bytes(ptr %x, i1 %c) {
entry:
  br i1 %c, label %first, label %join
first:
  br label %join
join:
  %taken = phi i8 [ 1, %first ], [ 0, %entry ]
  store i8 %taken, ptr %x
  ret void
}

; A loop's first iteration.
; CHECK-LABEL: define void @loop(
; CHECK: phi i1 [ true, %entry ], [ false, %loop ]
define void @loop(ptr %x, i1 %c, i1 %d) {
entry:
  br i1 %c, label %loop, label %end
loop:
  %is_first = phi i1 [ true, %entry ], [ false, %loop ]
  store i1 %is_first, ptr %x
  br i1 %d, label %loop, label %end
end:
  ret void
}
