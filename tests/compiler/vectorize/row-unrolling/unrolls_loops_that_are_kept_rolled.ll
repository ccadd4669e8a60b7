; A loop that must not be unrolled completely (rolled-loops) may be unrolled in part; one that its author wants rolled
; may not.
; RUN: kiln-opt --passes=row-unrolling %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define i32 @kept(
; CHECK: br i1 %c, label %loop, label %done, !llvm.loop [[KEPT:![0-9]+]]
define i32 @kept(ptr %x) {
entry:
  %lane = call i32 @__kiln_lane()
  %row = mul i32 %lane, 100
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %more, %loop ]
  %i = add i32 %row, %k
  %o = zext i32 %i to i64
  %p = getelementptr i32, ptr %x, i64 %o
  %v = load i32, ptr %p
  %more = add i32 %sum, %v
  %next = add nuw i32 %k, 1
  %c = icmp ult i32 %next, 32
  br i1 %c, label %loop, label %done, !llvm.loop !0
done:
  ret i32 %more
}

; CHECK-LABEL: define i32 @asked_for(
; CHECK: br i1 %c, label %loop, label %done, !llvm.loop [[OWN:![0-9]+]]
define i32 @asked_for(ptr %x) {
entry:
  %lane = call i32 @__kiln_lane()
  %row = mul i32 %lane, 100
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %more, %loop ]
  %i = add i32 %row, %k
  %o = zext i32 %i to i64
  %p = getelementptr i32, ptr %x, i64 %o
  %v = load i32, ptr %p
  %more = add i32 %sum, %v
  %next = add nuw i32 %k, 1
  %c = icmp ult i32 %next, 32
  br i1 %c, label %loop, label %done, !llvm.loop !3
done:
  ret i32 %more
}

; CHECK: [[KEPT]] = distinct !{[[KEPT]], [[COUNT:![0-9]+]]}
; CHECK: [[COUNT]] = !{!"llvm.loop.unroll.count", i32 4}
; CHECK: [[OWN]] = distinct !{[[OWN]], [[DISABLE:![0-9]+]]}
; CHECK: [[DISABLE]] = !{!"llvm.loop.unroll.disable"}
!0 = distinct !{!0, !1, !2}
!1 = !{!"llvm.loop.unroll.disable"}
!2 = !{!"kiln.loop.rolled"}
!3 = distinct !{!3, !1}
