; A loop of 2^32 iterations takes seconds and counts as one that ends; one of 2^33 does not.
; RUN: kiln-opt --passes=interrupt-polls %s | FileCheck %s

; CHECK-LABEL: define void @__kiln_short(
; CHECK-NOT: attend
; CHECK: ret void
define void @__kiln_short(ptr %launch, ptr %thread, ptr %y) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  store volatile i64 %i, ptr %y
  %i.next = add nuw i64 %i, 1
  %again = icmp ult i64 %i.next, 4294967296
  br i1 %again, label %loop, label %done
done:
  ret void
}

; CHECK-LABEL: define void @__kiln_long(
; CHECK: attend:
; CHECK: ret void
define void @__kiln_long(ptr %launch, ptr %thread, ptr %y) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  store volatile i64 %i, ptr %y
  %i.next = add nuw i64 %i, 1
  %again = icmp ult i64 %i.next, 8589934592
  br i1 %again, label %loop, label %done
done:
  ret void
}
