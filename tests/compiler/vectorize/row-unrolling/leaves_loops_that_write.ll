; Loads are not grouped over a write, unless what they load is never written.
; RUN: kiln-opt --passes=row-unrolling %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @in_place(
; CHECK-NOT: llvm.loop
define void @in_place(ptr %x, i32 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  %row = mul i32 %lane, 100
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %i = add i32 %row, %k
  %o = zext i32 %i to i64
  %p = getelementptr i32, ptr %x, i64 %o
  %v = load i32, ptr %p
  %more = add i32 %v, 1
  store i32 %more, ptr %p
  %next = add nuw i32 %k, 1
  %c = icmp ult i32 %next, %n
  br i1 %c, label %loop, label %done
done:
  ret void
}

; CHECK-LABEL: define void @from_what_is_never_written(
; CHECK: br i1 %c, label %loop, label %done, !llvm.loop
define void @from_what_is_never_written(ptr %x, ptr %y, i32 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  %row = mul i32 %lane, 100
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %i = add i32 %row, %k
  %o = zext i32 %i to i64
  %p = getelementptr i32, ptr %x, i64 %o
  %v = load i32, ptr %p, !invariant.load !0
  %q = getelementptr i32, ptr %y, i64 %o
  store i32 %v, ptr %q
  %next = add nuw i32 %k, 1
  %c = icmp ult i32 %next, %n
  br i1 %c, label %loop, label %done
done:
  ret void
}

!0 = !{}
