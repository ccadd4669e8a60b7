; Copies of a short loop cost little, and a loop that its author wants unrolled is.
; RUN: kiln-opt --passes=rolled-loops %s | FileCheck %s

; CHECK-LABEL: define i32 @short(
; CHECK-NOT: llvm.loop
define i32 @short(ptr %x, i64 %any) {
entry:
  %a = alloca [4 x i32]
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi i32 [ 0, %entry ], [ %t, %loop ]
  %i = add i64 %k, %any
  %low = and i64 %i, 3
  %q = getelementptr [4 x i32], ptr %a, i64 0, i64 %low
  %v = load i32, ptr %q
  %t = add i32 %s, %v
  %next = add i64 %k, 1
  %c = icmp ult i64 %next, 4
  br i1 %c, label %loop, label %done
done:
  ret i32 %t
}

; The body's author wants it unrolled.
; CHECK-LABEL: define i32 @asked_for(
; CHECK: br i1 %c, label %loop, label %done, !llvm.loop [[OWN:![0-9]+]]
; CHECK: [[OWN]] = distinct !{[[OWN]], [[FULL:![0-9]+]]}
; CHECK: [[FULL]] = !{!"llvm.loop.unroll.full"}
define i32 @asked_for(ptr %x, i64 %any) {
entry:
  %a = alloca [64 x i32]
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi i32 [ 0, %entry ], [ %t, %loop ]
  %i = add i64 %k, %any
  %low = and i64 %i, 63
  %q = getelementptr [64 x i32], ptr %a, i64 0, i64 %low
  %v = load i32, ptr %q
  %t = add i32 %s, %v
  %next = add i64 %k, 1
  %c = icmp ult i64 %next, 64
  br i1 %c, label %loop, label %done, !llvm.loop !0
done:
  ret i32 %t
}

!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.unroll.full"}
