; Nothing is ordered where the returning threads write nothing that others can read, where all threads take the edge
; together, and where no thread waits.
; RUN: kiln-opt --passes=early-exits %s | FileCheck %s

; CHECK-NOT: @__kiln_never

declare i32 @__kiln_lane()
declare i64 @__kiln_wait(i32, i64, i64) convergent

; CHECK-LABEL: define void @writes_nothing(
; CHECK: br i1 %odd, label %leave, label %wait
; CHECK: leave:
; CHECK-NEXT: ret void
define void @writes_nothing() {
entry:
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %leave, label %wait
leave:
  ret void
wait:
  %all = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  ret void
}

; CHECK-LABEL: define void @writes_memory_of_its_own(
; CHECK: br i1 %odd, label %leave, label %wait
; CHECK: leave:
; CHECK-NEXT: store float 1.0
; CHECK-NEXT: ret void
define void @writes_memory_of_its_own() {
entry:
  %own = alloca float
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %leave, label %wait
leave:
  store float 1.0, ptr %own
  ret void
wait:
  %all = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  ret void
}

; CHECK-LABEL: define void @uniform_branch(
; CHECK: br i1 %c, label %leave, label %wait
; CHECK: leave:
; CHECK-NEXT: store float 1.0
; CHECK-NEXT: ret void
define void @uniform_branch(ptr %arguments, i1 %c) {
entry:
  %y = load ptr, ptr %arguments, !invariant.load !0
  br i1 %c, label %leave, label %wait
leave:
  store float 1.0, ptr %y
  ret void
wait:
  %all = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  ret void
}

; CHECK-LABEL: define void @no_barrier(
; CHECK: br i1 %odd, label %leave, label %stay
; CHECK: leave:
; CHECK-NEXT: store float 1.0
; CHECK-NEXT: ret void
define void @no_barrier(ptr %arguments) {
entry:
  %y = load ptr, ptr %arguments, !invariant.load !0
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %leave, label %stay
leave:
  store float 1.0, ptr %y
  ret void
stay:
  store float 2.0, ptr %y
  ret void
}

; Both sides wait: neither is an exit.
; CHECK-LABEL: define void @both_wait(
; CHECK: br i1 %odd, label %one, label %other
; CHECK: ret void
define void @both_wait(ptr %arguments) {
entry:
  %y = load ptr, ptr %arguments, !invariant.load !0
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %one, label %other
one:
  store float 1.0, ptr %y
  br label %other
other:
  %all = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  ret void
}

; CHECK-NOT: @__kiln_never

!0 = !{}
