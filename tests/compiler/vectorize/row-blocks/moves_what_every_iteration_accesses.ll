; A conditional store stays in the iterations, beside a row that moves. A known number of iterations that is a multiple of
; 16 has no last block; of less than 32 there are no blocks. Where lanes leave one by one, none are made.
; RUN: kiln-opt --passes=row-blocks %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @conditional(
; CHECK: row.block:
; CHECK-NOT: umin
; CHECK: loop:
; CHECK: load i32, ptr %{{.+}}, align 4, !kiln.row-block
; CHECK: some:
; CHECK-NEXT: %q = getelementptr
; CHECK-NEXT: store i32 %new, ptr %q, align 4{{$}}
; CHECK: icmp ult i64 %row.k, 15
define void @conditional(ptr %args) {
entry:
  %x = load ptr, ptr %args, !invariant.load !0
  %after = getelementptr ptr, ptr %args, i64 1
  %y = load ptr, ptr %after, !invariant.load !0
  %lane = call i32 @__kiln_lane()
  %first = mul i32 %lane, 100
  %row = zext i32 %first to i64
  %in = getelementptr i32, ptr %x, i64 %row
  %out = getelementptr i32, ptr %y, i64 %row
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %p = getelementptr i32, ptr %in, i64 %i
  %v = load i32, ptr %p, align 4
  %new = add i32 %v, 1
  store i32 %new, ptr %p, align 4
  %is = icmp sgt i32 %v, 0
  br i1 %is, label %some, label %latch
some:
  %q = getelementptr i32, ptr %out, i64 %i
  store i32 %new, ptr %q, align 4
  br label %latch
latch:
  %next = add nuw nsw i64 %i, 1
  %c = icmp ult i64 %next, 64
  br i1 %c, label %loop, label %done
done:
  ret void
}

; CHECK-LABEL: define void @short(
; CHECK-NOT: row.block
; CHECK: ret void
define void @short(ptr %x) {
entry:
  %lane = call i32 @__kiln_lane()
  %first = mul i32 %lane, 100
  %row = zext i32 %first to i64
  %in = getelementptr i32, ptr %x, i64 %row
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr i32, ptr %in, i64 %i
  %v = load i32, ptr %p, align 4
  %new = add i32 %v, 1
  store i32 %new, ptr %p, align 4
  %next = add nuw nsw i64 %i, 1
  %c = icmp ult i64 %next, 31
  br i1 %c, label %loop, label %done
done:
  ret void
}

; CHECK-LABEL: define void @divergent(
; CHECK-NOT: row.block
; CHECK: ret void
define void @divergent(ptr %x) {
entry:
  %lane = call i32 @__kiln_lane()
  %first = mul i32 %lane, 100
  %row = zext i32 %first to i64
  %in = getelementptr i32, ptr %x, i64 %row
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr i32, ptr %in, i64 %i
  %v = load i32, ptr %p, align 4
  %new = add i32 %v, 1
  store i32 %new, ptr %p, align 4
  %next = add nuw nsw i64 %i, 1
  %c = icmp ult i64 %next, %row
  br i1 %c, label %loop, label %done
done:
  ret void
}

!0 = !{}
