; Branches, memory and functions of other names stay.
; RUN: kiln-opt --passes=convergence-points-in-loops,thread-index,simdgroup-masks,simdgroup-collectives,adce %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

declare void @__kiln_fail(i32)

; CHECK-LABEL: define void @plain(
; CHECK-NOT: @llvm.nvvm
; CHECK: br i1 %condition
; CHECK-NOT: @llvm.nvvm
; CHECK: call void @__kiln_fail(i32 3)
; CHECK-NOT: @llvm.nvvm
; CHECK: ret void
define void @plain(ptr %out, i1 %condition) {
entry:
  br i1 %condition, label %then, label %join
then:
  call void @__kiln_fail(i32 3)
  br label %join
join:
  store i32 1, ptr %out
  ret void
}
