; A call that the control flow graph has inside the loop, or that comes after the loop in the source, stays as it is.
; RUN: kiln-opt --passes=convergence-points-in-loops %s | FileCheck %s

; CHECK-NOT: @__kiln_never

declare i32 @__kiln_loop_enter() convergent
declare void @__kiln_loop_merge(i32) convergent
declare i64 @__kiln_exchange(i32, i32, i32, ptr, i64, i64, i64) convergent

; CHECK-LABEL: define i64 @inside_and_behind(
; CHECK: call i64 @__kiln_wait1(i32 0,
; CHECK: call i64 @__kiln_wait0(i32 1,
define i64 @inside_and_behind(i1 %c) {
entry:
  %mark = call i32 @__kiln_loop_enter() convergent
  br label %loop
loop:
  %in = call i64 @__kiln_exchange(i32 1, i32 1, i32 32, ptr null, i64 0, i64 5, i64 0) convergent
  br i1 %c, label %loop, label %done
done:
  call void @__kiln_loop_merge(i32 %mark) convergent
  %behind = call i64 @__kiln_exchange(i32 2, i32 1, i32 32, ptr null, i64 0, i64 %in, i64 0) convergent
  ret i64 %behind
}

; CHECK-NOT: @__kiln_never
