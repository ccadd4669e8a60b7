; A bounded loop over calls of a function with polls would go on calling it after the end was requested, so it has a
; poll too. A bounded loop over calls of another function has none.
; RUN: kiln-opt --passes=interrupt-polls %s | FileCheck %s

; CHECK-LABEL: define void @__kiln_caller(
; CHECK: attend:
; CHECK-LABEL: define void @__kiln_waits(
; CHECK: attend:
; CHECK-LABEL: define void @__kiln_other_caller(
; CHECK-NOT: attend
; CHECK-LABEL: define void @__kiln_stores(

define void @__kiln_caller(ptr %launch, ptr %thread, ptr %flag) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  call void @__kiln_waits(ptr %launch, ptr %thread, ptr %flag)
  %i.next = add i32 %i, 1
  %again = icmp ult i32 %i.next, 8
  br i1 %again, label %loop, label %done
done:
  ret void
}

define void @__kiln_waits(ptr %launch, ptr %thread, ptr %flag) {
entry:
  br label %loop
loop:
  %f = load volatile i32, ptr %flag
  %again = icmp eq i32 %f, 0
  br i1 %again, label %loop, label %done
done:
  ret void
}

define void @__kiln_other_caller(ptr %launch, ptr %thread, ptr %flag) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  call void @__kiln_stores(ptr %launch, ptr %thread, ptr %flag)
  %i.next = add i32 %i, 1
  %again = icmp ult i32 %i.next, 8
  br i1 %again, label %loop, label %done
done:
  ret void
}

define void @__kiln_stores(ptr %launch, ptr %thread, ptr %flag) {
  store i32 1, ptr %flag
  ret void
}
