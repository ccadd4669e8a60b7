; A use that no barrier precedes keeps the first load. So does one in a loop that does not have the load: it would be
; loaded in each iteration.
; RUN: kiln-opt --passes=reload-inputs %s | FileCheck %s

declare i32 @__kiln_lane()
declare i64 @__kiln_wait(i32, i64, i64) convergent

; CHECK-LABEL: define void @before_the_barrier(
; CHECK: %a = load float
; CHECK-NEXT: store float %a
; CHECK-NEXT: call i64 @__kiln_wait
; CHECK-NEXT: ret void
define void @before_the_barrier(ptr %x, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %x, i32 %lane
  %a = load float, ptr %from, !invariant.load !0
  store float %a, ptr %y
  %all = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  ret void
}

; The barrier comes before the load.
; CHECK-LABEL: define void @after_an_earlier_barrier(
; CHECK: call i64 @__kiln_wait
; CHECK-NEXT: %a = load float
; CHECK-NEXT: store float %a
; CHECK-NEXT: ret void
define void @after_an_earlier_barrier(ptr %x, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %x, i32 %lane
  %all = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  %a = load float, ptr %from, !invariant.load !0
  store float %a, ptr %y
  ret void
}

; CHECK-LABEL: define void @in_a_loop(
; CHECK: loop:
; CHECK-NOT: load
; CHECK: store float %a
; CHECK-NOT: load
; CHECK: ret void
define void @in_a_loop(ptr %x, ptr %y, i32 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %x, i32 %lane
  %a = load float, ptr %from, !invariant.load !0
  %all = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  store float %a, ptr %y
  %i.next = add i32 %i, 1
  %again = icmp ult i32 %i.next, %n
  br i1 %again, label %loop, label %done
done:
  ret void
}

!0 = !{}
