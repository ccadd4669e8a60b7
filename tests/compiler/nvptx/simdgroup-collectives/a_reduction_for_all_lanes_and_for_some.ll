; A sum of integers is one instruction, which ignores lanes that are missing. A sum of floats is five steps if all lanes
; are there. If some are missing, a loop combines those that are, in the same pairs.
; RUN: kiln-opt --passes=convergence-points-in-loops,thread-index,simdgroup-masks,simdgroup-collectives --function=integers %s | FileCheck %s --check-prefix=INTEGERS
; RUN: kiln-opt --passes=convergence-points-in-loops,thread-index,simdgroup-masks,simdgroup-collectives --function=floats %s | FileCheck %s --check-prefix=FLOATS

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

declare i64 @__kiln_exchange(i32, i32, i32, ptr, i64, i64, i64) convergent

define internal i64 @add_integers(i64 %a, i64 %b) {
  %x = trunc i64 %a to i32
  %y = trunc i64 %b to i32
  %sum = add i32 %x, %y
  %wide = zext i32 %sum to i64
  ret i64 %wide
}

define internal i64 @add_floats(i64 %a, i64 %b) {
  %x = trunc i64 %a to i32
  %y = trunc i64 %b to i32
  %p = bitcast i32 %x to float
  %q = bitcast i32 %y to float
  %sum = fadd float %p, %q
  %bits = bitcast float %sum to i32
  %wide = zext i32 %bits to i64
  ret i64 %wide
}

; INTEGERS-LABEL: define i64 @integers(
; INTEGERS: call i32 @llvm.nvvm.redux.sync.add(i32 %{{.+}}, i32 -1)
; INTEGERS-NOT: @llvm.nvvm.shfl
; INTEGERS: ret i64
define i64 @integers(i64 %value) {
  %r = call i64 @__kiln_exchange(i32 1, i32 3, i32 32, ptr @add_integers, i64 0, i64 %value, i64 0) convergent
  ret i64 %r
}

; FLOATS-LABEL: define i64 @floats(
; FLOATS: %[[ALL:.+]] = icmp eq i32 %{{.+}}, -1
; FLOATS: br i1 %[[ALL]]
; FLOATS-COUNT-5: call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1,
; FLOATS-NOT: @llvm.nvvm.shfl.sync.bfly
; FLOATS: step:
; FLOATS: call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1,
; FLOATS: !llvm.loop
; FLOATS: ret i64
define i64 @floats(i64 %value) {
  %r = call i64 @__kiln_exchange(i32 1, i32 3, i32 32, ptr @add_floats, i64 2147483648, i64 %value, i64 0) convergent
  ret i64 %r
}
