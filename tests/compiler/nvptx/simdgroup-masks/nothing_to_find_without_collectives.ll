; A barrier alone needs no mask of lanes: no query which threads were launched, no vote, whatever branches there are.
; RUN: kiln-opt --passes=convergence-points-in-loops,thread-index,simdgroup-masks %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

declare void @__kiln_threadgroup_barrier(i32) convergent
declare i32 @__kiln_value(i32)

; CHECK-LABEL: define void @barrier(
; CHECK-NOT: @__kiln_launched
; CHECK-NOT: @llvm.nvvm.vote
; CHECK: call i64 @__kiln_wait0(i32 0,
; CHECK-NOT: @llvm.nvvm.vote
; CHECK: ret void
define void @barrier(ptr %out) {
entry:
  %index = call i32 @__kiln_value(i32 18)
  %is_odd = trunc i32 %index to i1
  br i1 %is_odd, label %then, label %join
then:
  store i32 7, ptr %out
  br label %join
join:
  call void @__kiln_threadgroup_barrier(i32 1) convergent
  ret void
}
