; The block is reached from other blocks, or the side is. A value that leaves a loop does so through a phi, which is
; divergent if lanes leave in different iterations.
; RUN: kiln-opt --passes=flow-conditions %s | FileCheck %s

; CHECK-LABEL: define void @three(
; CHECK: phi i1 [ false, %first ], [ false, %second ], [ true, %entry ]
define void @three(ptr %x, i1 %c, i1 %d) {
entry:
  br i1 %c, label %first, label %join
first:
  br i1 %d, label %second, label %join
second:
  br label %join
join:
  %other = phi i1 [ false, %first ], [ false, %second ], [ true, %entry ]
  store i1 %other, ptr %x
  ret void
}

; Neither predecessor is the branch above.
; CHECK-LABEL: define void @both_sides(
; CHECK: phi i1 [ false, %first ], [ true, %second ]
define void @both_sides(ptr %x, i1 %c) {
entry:
  br i1 %c, label %first, label %second
first:
  br label %join
second:
  br label %join
join:
  %other = phi i1 [ false, %first ], [ true, %second ]
  store i1 %other, ptr %x
  ret void
}

; CHECK-LABEL: define void @out_of_a_loop(
; CHECK: phi i1 [ true, %loop ], [ false, %latch ]
define void @out_of_a_loop(ptr %x, i32 %n) {
entry:
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %latch ]
  %c = icmp eq i32 %k, %n
  br i1 %c, label %end, label %latch
latch:
  %next = add i32 %k, 1
  %d = icmp ult i32 %next, 9
  br i1 %d, label %loop, label %end
end:
  %found = phi i1 [ true, %loop ], [ false, %latch ]
  store i1 %found, ptr %x
  ret void
}

; Within a loop.
; CHECK-LABEL: define void @in_a_loop(
; CHECK-NOT: phi i1
; CHECK: store i1 %c, ptr %x
define void @in_a_loop(ptr %x, i32 %n) {
entry:
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %join ]
  %c = icmp eq i32 %k, %n
  br i1 %c, label %side, label %join
side:
  br label %join
join:
  %is_there = phi i1 [ false, %loop ], [ true, %side ]
  store i1 %is_there, ptr %x
  %next = add i32 %k, 1
  %d = icmp ult i32 %next, 9
  br i1 %d, label %loop, label %end
end:
  ret void
}
