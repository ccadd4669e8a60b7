; Where lanes leave one by one, a copy of an iteration would need a mask of its own; a loop of a few iterations has no four.
; RUN: kiln-opt --passes=row-unrolling %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define i32 @divergent(
; CHECK-NOT: llvm.loop
define i32 @divergent(ptr %x, i32 %n) {
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
  %c = icmp ult i32 %next, %lane
  br i1 %c, label %loop, label %done
done:
  ret i32 %more
}

; CHECK-LABEL: define i32 @short(
; CHECK-NOT: llvm.loop
define i32 @short(ptr %x, i32 %n) {
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
  %c = icmp ult i32 %next, 7
  br i1 %c, label %loop, label %done
done:
  ret i32 %more
}
