; A function that returns out of its loop skips the loop's mark. After the mark of its call, nothing is inside its
; loops: the second barrier is not counted. Without that mark it would be.
; RUN: kiln-opt --passes=convergence-points %s | FileCheck %s

declare i32 @__kiln_loop_enter() convergent
declare i32 @__kiln_call_enter() convergent
declare void @__kiln_loop_merge(i32) convergent
declare void @__kiln_call_merge(i32) convergent
declare void @__kiln_threadgroup_barrier(i32) convergent

; CHECK-LABEL: define void @returns_out_of_a_loop(
; CHECK: returns:
; CHECK-NEXT: call i64 @__kiln_wait1(i32 0, i64 0, i64 0, i32 %
; CHECK: behind:
; CHECK-NEXT: call i64 @__kiln_wait0(i32 1, i64 0, i64 0)
; CHECK-NEXT: ret void
define void @returns_out_of_a_loop(i1 %c) {
entry:
  %call = call i32 @__kiln_call_enter() convergent
  %mark = call i32 @__kiln_loop_enter() convergent
  br label %loop
loop:
  br i1 %c, label %returns, label %loop
returns:
  call void @__kiln_threadgroup_barrier(i32 1) convergent
  br label %behind
behind:
  call void @__kiln_call_merge(i32 %call) convergent
  call void @__kiln_threadgroup_barrier(i32 2) convergent
  ret void
}

; CHECK-LABEL: define void @has_no_mark(
; CHECK: behind:
; CHECK-NEXT: call i64 @__kiln_wait1(i32 1, i64 0, i64 0, i32 %
define void @has_no_mark(i1 %c) {
entry:
  %mark = call i32 @__kiln_loop_enter() convergent
  br label %loop
loop:
  br i1 %c, label %returns, label %loop
returns:
  call void @__kiln_threadgroup_barrier(i32 1) convergent
  br label %behind
behind:
  call void @__kiln_threadgroup_barrier(i32 2) convergent
  ret void
}
