; Threads leave a loop in different iterations and execute a collective together after it. Who waits there keeps the
; others from passing their barrier, so the code after the loop needs no order, and becomes no part of the loop.
; RUN: kiln-opt --passes=early-exits %s | FileCheck %s

; CHECK-NOT: @__kiln_never

declare i32 @__kiln_lane()
declare i64 @__kiln_wait(i32, i64, i64) convergent
declare void @meet() convergent

; CHECK-LABEL: define void @leaves_in_iterations(
; CHECK: br i1 %leaves, label %leave, label %stay
; CHECK: leave:
; CHECK-NEXT: call void @meet()
; CHECK-NEXT: store float 1.0
; CHECK-NEXT: ret void
define void @leaves_in_iterations(ptr %arguments) {
entry:
  %y = load ptr, ptr %arguments, !invariant.load !0
  %lane = call i32 @__kiln_lane()
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %stay ]
  %leaves = icmp eq i32 %i, %lane
  br i1 %leaves, label %leave, label %stay
stay:
  %all = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  %read = load volatile float, ptr %y
  %i.next = add i32 %i, 1
  br label %loop
leave:
  call void @meet() convergent
  store float 1.0, ptr %y
  ret void
}

; CHECK-NOT: @__kiln_never

!0 = !{}
