; Loads of 16 bytes whose only use is a store to threadgroup memory become asynchronous copies. The thread waits for them
; before the barrier, once for all.
; RUN: kiln-opt --passes=asynchronous-copies %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@a = internal addrspace(3) global [512 x float] poison, align 16
@b = internal addrspace(3) global [512 x float] poison, align 16

; CHECK-LABEL: @two_tiles(
; CHECK-NOT: load <4 x float>
; CHECK: call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) @a, ptr addrspace(1) %x)
; CHECK: call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %a4, ptr addrspace(1) %x4)
; CHECK: call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) @b, ptr addrspace(1) %x)
; CHECK-NEXT: call void @llvm.nvvm.cp.async.wait.all()
; CHECK-NEXT: call void @llvm.nvvm.barrier0()
; CHECK-NOT: wait.all
; CHECK: ret void
define void @two_tiles(ptr addrspace(1) %x, ptr addrspace(1) %y) {
  %one = load <4 x float>, ptr addrspace(1) %x, align 16, !invariant.load !0
  store <4 x float> %one, ptr addrspace(3) @a, align 16
  %x4 = getelementptr float, ptr addrspace(1) %x, i64 64
  %a4 = getelementptr float, ptr addrspace(3) @a, i64 64
  %two = load <4 x float>, ptr addrspace(1) %x4, align 16, !invariant.load !0
  store <4 x float> %two, ptr addrspace(3) %a4, align 16
  %three = load <4 x float>, ptr addrspace(1) %x, align 16, !invariant.load !0
  store <4 x float> %three, ptr addrspace(3) @b, align 16
  call void @llvm.nvvm.barrier0()
  %sum = load float, ptr addrspace(3) @a
  store float %sum, ptr addrspace(1) %y
  call void @llvm.nvvm.barrier0()
  ret void
}

; A loop's copies with one node write to different addresses, also once the loop is unrolled in part.
; CHECK-LABEL: @of_one_loop(
; CHECK: again:
; CHECK: cp.async.cg.shared.global.16
; CHECK: cp.async.cg.shared.global.16
; CHECK: end:
; CHECK-NEXT: call void @llvm.nvvm.cp.async.wait.all()
; CHECK-NEXT: call void @llvm.nvvm.barrier0()
define void @of_one_loop(ptr addrspace(1) %x, i32 %n) {
entry:
  br label %again
again:
  %i = phi i32 [ 0, %entry ], [ %next, %again ]
  %from = getelementptr <4 x float>, ptr addrspace(1) %x, i32 %i
  %one = load <4 x float>, ptr addrspace(1) %from, align 16, !invariant.load !0
  %row = udiv i32 %i, 5
  %to = getelementptr <4 x float>, ptr addrspace(3) @a, i32 %row
  store <4 x float> %one, ptr addrspace(3) %to, align 16, !kiln.disjoint !1
  %i5 = add i32 %i, 5
  %from5 = getelementptr <4 x float>, ptr addrspace(1) %x, i32 %i5
  %two = load <4 x float>, ptr addrspace(1) %from5, align 16, !invariant.load !0
  %row5 = udiv i32 %i5, 5
  %to5 = getelementptr <4 x float>, ptr addrspace(3) @a, i32 %row5
  store <4 x float> %two, ptr addrspace(3) %to5, align 16, !kiln.disjoint !1
  %next = add i32 %i, 10
  %more = icmp ult i32 %next, %n
  br i1 %more, label %again, label %end
end:
  call void @llvm.nvvm.barrier0()
  ret void
}

declare void @llvm.nvvm.barrier0()
!0 = !{}
!1 = distinct !{}
