; Two paths lead to two barriers: the wait stands before each of them. In a loop, the barrier at its end is behind the
; copies, and that at its beginning in front. In an unrolled loop, one block has several intervals between barriers.
; RUN: kiln-opt --passes=asynchronous-copies %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@a = internal addrspace(3) global [512 x float] poison, align 16

; CHECK-LABEL: @either(
; CHECK: cp.async.cg.shared.global.16
; CHECK: left:
; CHECK: call void @llvm.nvvm.cp.async.wait.all()
; CHECK-NEXT: call void @llvm.nvvm.barrier0()
; CHECK: right:
; CHECK: call void @llvm.nvvm.cp.async.wait.all()
; CHECK-NEXT: call void @llvm.nvvm.barrier.sync(i32 0)
define void @either(ptr addrspace(1) %x, i1 %c) {
  %one = load <4 x float>, ptr addrspace(1) %x, align 16, !invariant.load !0
  store <4 x float> %one, ptr addrspace(3) @a, align 16
  br i1 %c, label %left, label %right
left:
  call void @llvm.nvvm.barrier0()
  ret void
right:
  call void @llvm.nvvm.barrier.sync(i32 0)
  ret void
}

; CHECK-LABEL: @loop(
; CHECK: again:
; CHECK-NEXT: phi
; CHECK-NEXT: call void @llvm.nvvm.barrier0()
; CHECK: cp.async.cg.shared.global.16
; CHECK: call void @llvm.nvvm.cp.async.wait.all()
; CHECK-NEXT: call void @llvm.nvvm.barrier0()
; CHECK-NEXT: %v = load float
define void @loop(ptr addrspace(1) %x, ptr addrspace(1) %y) {
entry:
  br label %again
again:
  %i = phi i32 [ 0, %entry ], [ %next, %again ]
  call void @llvm.nvvm.barrier0()
  %from = getelementptr <4 x float>, ptr addrspace(1) %x, i32 %i
  %one = load <4 x float>, ptr addrspace(1) %from, align 16, !invariant.load !0
  store <4 x float> %one, ptr addrspace(3) @a, align 16
  call void @llvm.nvvm.barrier0()
  %v = load float, ptr addrspace(3) @a
  store float %v, ptr addrspace(1) %y
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, 9
  br i1 %more, label %again, label %end
end:
  ret void
}

; CHECK-LABEL: @two_intervals(
; CHECK: cp.async.cg.shared.global.16
; CHECK-NEXT: call void @llvm.nvvm.cp.async.wait.all()
; CHECK-NEXT: call void @llvm.nvvm.barrier0()
; CHECK-NEXT: %v = load float
; CHECK-NEXT: store float %v
; CHECK-NEXT: call void @llvm.nvvm.barrier0()
; CHECK: cp.async.cg.shared.global.16
; CHECK-NEXT: call void @llvm.nvvm.cp.async.wait.all()
; CHECK-NEXT: call void @llvm.nvvm.barrier0()
define void @two_intervals(ptr addrspace(1) %x, ptr addrspace(1) %y) {
  %one = load <4 x float>, ptr addrspace(1) %x, align 16, !invariant.load !0
  store <4 x float> %one, ptr addrspace(3) @a, align 16
  call void @llvm.nvvm.barrier0()
  %v = load float, ptr addrspace(3) @a
  store float %v, ptr addrspace(1) %y
  call void @llvm.nvvm.barrier0()
  %x4 = getelementptr float, ptr addrspace(1) %x, i64 64
  %two = load <4 x float>, ptr addrspace(1) %x4, align 16, !invariant.load !0
  store <4 x float> %two, ptr addrspace(3) @a, align 16
  call void @llvm.nvvm.barrier0()
  %w = load float, ptr addrspace(3) @a
  store float %w, ptr addrspace(1) %y
  ret void
}

declare void @llvm.nvvm.barrier0()
declare void @llvm.nvvm.barrier.sync(i32)
!0 = !{}
