; Lanes are two, three or four elements apart, and the next iterations load what is between: four of them, also of narrow
; elements.
; RUN: kiln-opt --passes=row-unrolling %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define i32 @two(
; CHECK: br i1 %c, label %loop, label %done, !llvm.loop [[TWO:![0-9]+]]
define i32 @two(ptr %x, i32 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  %row = mul i32 %lane, 2
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
  %c = icmp ult i32 %next, 100
  br i1 %c, label %loop, label %done
done:
  ret i32 %more
}

; CHECK-LABEL: define i32 @three(
; CHECK: br i1 %c, label %loop, label %done, !llvm.loop [[THREE:![0-9]+]]
define i32 @three(ptr %x, i32 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  %row = mul i32 %lane, 3
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
  %c = icmp ult i32 %next, 100
  br i1 %c, label %loop, label %done
done:
  ret i32 %more
}

; CHECK-LABEL: define i32 @four(
; CHECK: br i1 %c, label %loop, label %done, !llvm.loop [[FOUR:![0-9]+]]
define i32 @four(ptr %x, i32 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  %row = mul i32 %lane, 4
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
  %c = icmp ult i32 %next, 100
  br i1 %c, label %loop, label %done
done:
  ret i32 %more
}

; CHECK-LABEL: define i32 @halves(
; CHECK: br i1 %c, label %loop, label %done, !llvm.loop [[HALVES:![0-9]+]]
define i32 @halves(ptr %x, i32 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  %row = mul i32 %lane, 2
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %more, %loop ]
  %i = add i32 %row, %k
  %o = zext i32 %i to i64
  %p = getelementptr i16, ptr %x, i64 %o
  %h = load i16, ptr %p
  %v = zext i16 %h to i32
  %more = add i32 %sum, %v
  %next = add nuw i32 %k, 1
  %c = icmp ult i32 %next, 100
  br i1 %c, label %loop, label %done
done:
  ret i32 %more
}

; CHECK: [[TWO]] = distinct !{[[TWO]], [[COUNT:![0-9]+]]}
; CHECK: [[COUNT]] = !{!"llvm.loop.unroll.count", i32 4}
; CHECK: [[THREE]] = distinct !{[[THREE]], [[COUNT]]}
; CHECK: [[FOUR]] = distinct !{[[FOUR]], [[COUNT]]}
; CHECK: [[HALVES]] = distinct !{[[HALVES]], [[COUNT]]}
