; A load of what an earlier iteration has stored does not move before that store, and nothing moves in a loop whose
; arrays may be one.
; RUN: kiln-opt --passes=row-blocks %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @feedback(
; CHECK-NOT: row.block
; CHECK: ret void
define void @feedback(ptr %x, i64 %n) {
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
  %q = getelementptr i32, ptr %p, i64 1
  store i32 %v, ptr %q, align 4
  %next = add nuw nsw i64 %i, 1
  %c = icmp ult i64 %next, %n
  br i1 %c, label %loop, label %done
done:
  ret void
}

; The store of an element comes before its load.
; CHECK-LABEL: define void @stored_first(
; CHECK-NOT: row.block
; CHECK: ret void
define void @stored_first(ptr %x, i64 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  %first = mul i32 %lane, 100
  %row = zext i32 %first to i64
  %in = getelementptr i32, ptr %x, i64 %row
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi i32 [ 0, %entry ], [ %v, %loop ]
  %p = getelementptr i32, ptr %in, i64 %i
  store i32 %s, ptr %p, align 4
  %v = load i32, ptr %p, align 4
  %next = add nuw nsw i64 %i, 1
  %c = icmp ult i64 %next, %n
  br i1 %c, label %loop, label %done
done:
  ret void
}

; CHECK-LABEL: define void @any_pointers(
; CHECK-NOT: row.block
; CHECK: ret void
define void @any_pointers(ptr %x, ptr %y, i64 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  %first = mul i32 %lane, 100
  %row = zext i32 %first to i64
  %in = getelementptr i32, ptr %x, i64 %row
  %out = getelementptr i32, ptr %y, i64 %row
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr i32, ptr %in, i64 %i
  %v = load i32, ptr %p, align 4
  %q = getelementptr i32, ptr %out, i64 %i
  store i32 %v, ptr %q, align 4
  %next = add nuw nsw i64 %i, 1
  %c = icmp ult i64 %next, %n
  br i1 %c, label %loop, label %done
done:
  ret void
}

; The next lane's elements are in the same registers, and rows of one block would overlap.
; CHECK-LABEL: define void @near_rows(
; CHECK-NOT: row.block
; CHECK: ret void
define void @near_rows(ptr %x, i64 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  %first = mul i32 %lane, 16
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
  %c = icmp ult i64 %next, %n
  br i1 %c, label %loop, label %done
done:
  ret void
}
