; A collective in its loop stays, and so does one without a loop. A counter that has become a constant, or a sum of
; constants, is that of a loop that was unrolled: there is no loop to be in.
; RUN: kiln-opt --passes=collectives-in-loops %s | FileCheck %s

; CHECK-NOT: @__kiln_never

declare void @__kiln_iteration1(i32) convergent
declare i64 @__kiln_wait0(i32, i64, i64) convergent
declare i64 @__kiln_wait1(i32, i64, i64, i32) convergent

; CHECK-LABEL: define void @inside(
; CHECK: call void @__kiln_iteration1(i32 %i)
; CHECK-NEXT: br i1 %c, label %loop, label %done
define void @inside(i1 %c) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  %i.next = add i32 %i, 1
  call void @__kiln_iteration1(i32 %i) convergent
  br i1 %c, label %loop, label %done
done:
  %all = call i64 @__kiln_wait0(i32 0, i64 0, i64 0) convergent
  ret void
}

; CHECK-LABEL: define void @unrolled(
; CHECK: call i64 @__kiln_wait1(i32 0, i64 0, i64 0, i32 3)
; CHECK-NEXT: ret void
define void @unrolled() {
  %all = call i64 @__kiln_wait1(i32 0, i64 0, i64 0, i32 3) convergent
  ret void
}

; CHECK-NOT: @__kiln_never
