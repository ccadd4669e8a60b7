; The next iteration loads the next element of the lane's row: four of them are 16 bytes, and eight of
; halves. Indices of 32 bits are looked at before they are extended.
; RUN: kiln-opt --passes=row-unrolling %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define i32 @known(
; CHECK: br i1 %c, label %loop, label %done, !llvm.loop [[LOOP:![0-9]+]]
define i32 @known(ptr %x, i32 %n) {
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
  %c = icmp ult i32 %next, 100
  br i1 %c, label %loop, label %done
done:
  ret i32 %more
}

; CHECK-LABEL: define i32 @uniform(
; CHECK: br i1 %c, label %loop, label %done, !llvm.loop
define i32 @uniform(ptr %x, i32 %n) {
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
  %c = icmp ult i32 %next, %n
  br i1 %c, label %loop, label %done
done:
  ret i32 %more
}

; CHECK-LABEL: define i32 @halves(
; CHECK: br i1 %c, label %loop, label %done, !llvm.loop [[HALVES:![0-9]+]]
define i32 @halves(ptr %x, i32 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  %row = mul i32 %lane, 100
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

; CHECK: [[LOOP]] = distinct !{[[LOOP]], [[COUNT:![0-9]+]]}
; CHECK: [[COUNT]] = !{!"llvm.loop.unroll.count", i32 4}
; CHECK: [[HALVES]] = distinct !{[[HALVES]], [[EIGHT:![0-9]+]]}
; CHECK: [[EIGHT]] = !{!"llvm.loop.unroll.count", i32 8}
