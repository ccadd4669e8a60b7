; Elements of adjacent lanes are adjacent, or the next iteration's are not beside those of this one.
; RUN: kiln-opt --passes=row-unrolling %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define i32 @consecutive(
; CHECK-NOT: llvm.loop
define i32 @consecutive(ptr %x, i32 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  %row = mul i32 %lane, 1
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

; CHECK-LABEL: define i32 @every_other(
; CHECK-NOT: llvm.loop
define i32 @every_other(ptr %x, i32 %n) {
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
  %next = add nuw i32 %k, 2
  %c = icmp ult i32 %next, 100
  br i1 %c, label %loop, label %done
done:
  ret i32 %more
}

; CHECK-LABEL: define i32 @every_other_between_gaps(
; CHECK-NOT: llvm.loop
define i32 @every_other_between_gaps(ptr %x, i32 %n) {
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
  %next = add nuw i32 %k, 2
  %c = icmp ult i32 %next, 100
  br i1 %c, label %loop, label %done
done:
  ret i32 %more
}
