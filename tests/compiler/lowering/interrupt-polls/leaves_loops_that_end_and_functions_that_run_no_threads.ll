; A loop whose iterations are bounded ends, however the bound is passed. Functions that do not take the launch as the
; first argument are not interrupted.
; RUN: kiln-opt --passes=interrupt-polls %s | FileCheck %s

; CHECK-NOT: attend

; CHECK-LABEL: define void @__kiln_counts(
; CHECK: ret void
define void @__kiln_counts(ptr %launch, ptr %thread, ptr %y, i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  store volatile i32 %i, ptr %y
  %i.next = add i32 %i, 1
  %again = icmp ult i32 %i.next, %n
  br i1 %again, label %loop, label %done
done:
  ret void
}

; CHECK-LABEL: define void @other(
; CHECK: ret void
define void @other(ptr %launch, ptr %thread, ptr %flag) {
entry:
  br label %loop
loop:
  %f = load volatile i32, ptr %flag
  %again = icmp eq i32 %f, 0
  br i1 %again, label %loop, label %done
done:
  ret void
}

; CHECK-NOT: attend
