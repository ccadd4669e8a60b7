; An instance of a call is its position and, for each loop around it, the number of the iteration, which is passed as an
; operand, the outermost loop's first. A loop that the call is not in is not counted.
; RUN: kiln-opt --passes=convergence-points %s | FileCheck %s

declare void @__kiln_threadgroup_barrier(i32) convergent

; CHECK-LABEL: define void @nested(
; CHECK: outer:
; CHECK-NEXT: %[[I:.*]] = phi i32 [ %[[I_NEXT:.*]], %outer.latch ], [ 0, %entry ]
; CHECK: %[[I_NEXT]] = add i32 %[[I]], 1
; CHECK: inner:
; CHECK-NEXT: %[[J:.*]] = phi i32 [ %[[J_NEXT:.*]], %inner ], [ 0, %outer ]
; CHECK: %[[J_NEXT]] = add i32 %[[J]], 1
; CHECK: call i64 @__kiln_wait2(i32 0, i64 0, i64 0, i32 %[[I]], i32 %[[J]])
; CHECK: outer.latch:
; CHECK: call i64 @__kiln_wait1(i32 1, i64 0, i64 0, i32 %[[I]])
; CHECK: done:
; CHECK-NEXT: call i64 @__kiln_wait0(i32 2, i64 0, i64 0)
define void @nested(i1 %c, i1 %d) {
entry:
  br label %outer
outer:
  br label %inner
inner:
  call void @__kiln_threadgroup_barrier(i32 1) convergent
  br i1 %c, label %inner, label %outer.latch
outer.latch:
  call void @__kiln_threadgroup_barrier(i32 2) convergent
  br i1 %d, label %outer, label %done
done:
  call void @__kiln_threadgroup_barrier(i32 3) convergent
  ret void
}
