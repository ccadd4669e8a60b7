; All threads of the launch reach both collectives, however they diverge in between: the hardware waits for all 32 lanes,
; which costs nothing, and those that are threads of the launch take part. There is no vote.
; RUN: kiln-opt --passes=convergence-points-in-loops,thread-index,simdgroup-masks,simdgroup-collectives %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

declare i64 @__kiln_exchange(i32, i32, i32, ptr, i64, i64, i64) convergent
declare i32 @__kiln_value(i32)

; CHECK-LABEL: define i64 @both(
; CHECK: call i32 @__kiln_launched()
; CHECK-NOT: @llvm.nvvm.vote.ballot.sync
; CHECK: @llvm.nvvm.shfl.sync.idx.i32(i32 -1,
; CHECK: store i32 7, ptr %out
; CHECK-NOT: @llvm.nvvm.vote.ballot.sync
; CHECK: @llvm.nvvm.shfl.sync.idx.i32(i32 -1,
define i64 @both(ptr %out, i32 %value) {
entry:
  %wide = zext i32 %value to i64
  %r = call i64 @__kiln_exchange(i32 1, i32 1, i32 32, ptr null, i64 0, i64 %wide, i64 3) convergent
  %index = call i32 @__kiln_value(i32 18)
  %is_odd = trunc i32 %index to i1
  br i1 %is_odd, label %then, label %join
then:
  store i32 7, ptr %out
  br label %join
join:
  %s = call i64 @__kiln_exchange(i32 2, i32 1, i32 32, ptr null, i64 0, i64 %r, i64 5) convergent
  ret i64 %s
}
