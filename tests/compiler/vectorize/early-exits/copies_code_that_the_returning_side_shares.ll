; Threads that return and threads that have passed the barrier end in the same block, which writes. Those that return
; get a copy of it, which runs before the barrier; the block itself still runs after it.
; RUN: kiln-opt --passes=early-exits %s | FileCheck %s

declare i32 @__kiln_lane()
declare i64 @__kiln_wait(i32, i64, i64) convergent

; CHECK-LABEL: define void @shared_end(
; CHECK: br i1 %odd, label %[[COPY:.*]], label %[[CONTINUE:.*]]
; CHECK: wait:
; CHECK: call i64 @__kiln_wait
; CHECK-NEXT: br label %end
; CHECK: end:
; CHECK-NEXT: store float 1.0
; CHECK-NEXT: ret void
; CHECK: [[COPY]]:
; CHECK-NEXT: store float 1.0
; CHECK-NEXT: %[[NEVER:.*]] = call i1 @__kiln_never()
; CHECK-NEXT: br i1 %[[NEVER]], label %[[CONTINUE]], label %
define void @shared_end(ptr %arguments) {
entry:
  %y = load ptr, ptr %arguments, !invariant.load !0
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %end, label %wait
wait:
  %all = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  br label %end
end:
  store float 1.0, ptr %y
  ret void
}

!0 = !{}
