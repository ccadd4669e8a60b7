; A load and a store stay where the copy is not of 16 aligned bytes, where something else uses what is loaded or the tile
; before a barrier, and where what is read may change.
; RUN: kiln-opt --passes=asynchronous-copies %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@a = internal addrspace(3) global [512 x float] poison, align 16

; Copies of four bytes are slower.
; CHECK-LABEL: @of_4_bytes(
; CHECK-NOT: cp.async
; CHECK: store float %one, ptr addrspace(3) @a
; CHECK-NOT: cp.async
; CHECK: ret void
define void @of_4_bytes(ptr addrspace(1) %x, ptr addrspace(1) %y, ptr %z) {
  %one = load float, ptr addrspace(1) %x, align 4, !invariant.load !0
  store float %one, ptr addrspace(3) @a, align 4
  call void @llvm.nvvm.barrier0()
  ret void
}

; Neither address may be misaligned.
; CHECK-LABEL: @from_a_misaligned_address(
; CHECK-NOT: cp.async
; CHECK: store <4 x float> %one, ptr addrspace(3) @a
; CHECK-NOT: cp.async
; CHECK: ret void
define void @from_a_misaligned_address(ptr addrspace(1) %x, ptr addrspace(1) %y, ptr %z) {
  %one = load <4 x float>, ptr addrspace(1) %x, align 8, !invariant.load !0
  store <4 x float> %one, ptr addrspace(3) @a, align 16
  call void @llvm.nvvm.barrier0()
  ret void
}

; CHECK-LABEL: @to_a_misaligned_address(
; CHECK-NOT: cp.async
; CHECK: store <4 x float> %one, ptr addrspace(3) @a
; CHECK-NOT: cp.async
; CHECK: ret void
define void @to_a_misaligned_address(ptr addrspace(1) %x, ptr addrspace(1) %y, ptr %z) {
  %one = load <4 x float>, ptr addrspace(1) %x, align 16, !invariant.load !0
  store <4 x float> %one, ptr addrspace(3) @a, align 8
  call void @llvm.nvvm.barrier0()
  ret void
}

; Another thread may write it.
; CHECK-LABEL: @of_changing_memory(
; CHECK-NOT: cp.async
; CHECK: store <4 x float> %one, ptr addrspace(3) @a
; CHECK-NOT: cp.async
; CHECK: ret void
define void @of_changing_memory(ptr addrspace(1) %x, ptr addrspace(1) %y, ptr %z) {
  %one = load <4 x float>, ptr addrspace(1) %x, align 16
  store <4 x float> %one, ptr addrspace(3) @a, align 16
  call void @llvm.nvvm.barrier0()
  ret void
}

; The value is needed in a register.
; CHECK-LABEL: @used_otherwise(
; CHECK-NOT: cp.async
; CHECK: store <4 x float> %one, ptr addrspace(3) @a
; CHECK-NOT: cp.async
; CHECK: ret void
define void @used_otherwise(ptr addrspace(1) %x, ptr addrspace(1) %y, ptr %z) {
  %one = load <4 x float>, ptr addrspace(1) %x, align 16, !invariant.load !0
  store <4 x float> %one, ptr addrspace(3) @a, align 16
  store <4 x float> %one, ptr addrspace(1) %y
  call void @llvm.nvvm.barrier0()
  ret void
}

; The thread reads what it has copied.
; CHECK-LABEL: @read_at_once(
; CHECK-NOT: cp.async
; CHECK: store <4 x float> %one, ptr addrspace(3) @a
; CHECK-NOT: cp.async
; CHECK: ret void
define void @read_at_once(ptr addrspace(1) %x, ptr addrspace(1) %y, ptr %z) {
  %one = load <4 x float>, ptr addrspace(1) %x, align 16, !invariant.load !0
  store <4 x float> %one, ptr addrspace(3) @a, align 16
  %v = load float, ptr addrspace(3) @a
  store float %v, ptr addrspace(1) %y
  call void @llvm.nvvm.barrier0()
  ret void
}

; CHECK-LABEL: @through_any_pointer(
; CHECK-NOT: cp.async
; CHECK: store <4 x float> %one, ptr addrspace(3) @a
; CHECK-NOT: cp.async
; CHECK: ret void
define void @through_any_pointer(ptr addrspace(1) %x, ptr addrspace(1) %y, ptr %z) {
  %one = load <4 x float>, ptr addrspace(1) %x, align 16, !invariant.load !0
  store <4 x float> %one, ptr addrspace(3) @a, align 16
  store float 1.0, ptr %z
  call void @llvm.nvvm.barrier0()
  ret void
}

; Nothing would wait for the copy.
; CHECK-LABEL: @without_a_barrier(
; CHECK-NOT: cp.async
; CHECK: store <4 x float> %one, ptr addrspace(3) @a
; CHECK-NOT: cp.async
; CHECK: ret void
define void @without_a_barrier(ptr addrspace(1) %x, ptr addrspace(1) %y, ptr %z) {
  %one = load <4 x float>, ptr addrspace(1) %x, align 16, !invariant.load !0
  store <4 x float> %one, ptr addrspace(3) @a, align 16
  ret void
}

; Asynchronous copies of one thread are done in any order: the last one of two must stay.
; CHECK-LABEL: @twice_to_one_address(
; CHECK-NOT: cp.async
; CHECK: ret void
define void @twice_to_one_address(ptr addrspace(1) %x, i32 %i, i32 %j) {
  %one = load <4 x float>, ptr addrspace(1) %x, align 16, !invariant.load !0
  %to.i = getelementptr <4 x float>, ptr addrspace(3) @a, i32 %i
  store <4 x float> %one, ptr addrspace(3) %to.i, align 16
  %x4 = getelementptr float, ptr addrspace(1) %x, i64 64
  %two = load <4 x float>, ptr addrspace(1) %x4, align 16, !invariant.load !0
  %to.j = getelementptr <4 x float>, ptr addrspace(3) @a, i32 %j
  store <4 x float> %two, ptr addrspace(3) %to.j, align 16
  call void @llvm.nvvm.barrier0()
  ret void
}

; CHECK-LABEL: @in_a_loop_without_a_barrier(
; CHECK-NOT: cp.async
; CHECK: ret void
define void @in_a_loop_without_a_barrier(ptr addrspace(1) %x, i32 %n) {
entry:
  br label %again
again:
  %i = phi i32 [ 0, %entry ], [ %next, %again ]
  %from = getelementptr <4 x float>, ptr addrspace(1) %x, i32 %i
  %one = load <4 x float>, ptr addrspace(1) %from, align 16, !invariant.load !0
  %odd = and i32 %i, 1
  %to = getelementptr <4 x float>, ptr addrspace(3) @a, i32 %odd
  store <4 x float> %one, ptr addrspace(3) %to, align 16
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %again, label %end
end:
  call void @llvm.nvvm.barrier0()
  ret void
}

; The second copy's interval is not the first one's.
; CHECK-LABEL: @read_after_a_barrier_and_a_copy(
; CHECK: cp.async.cg.shared.global.16
; CHECK: call void @llvm.nvvm.barrier0()
; CHECK-NOT: cp.async
; CHECK: store <4 x float> %two, ptr addrspace(3) @a
; CHECK-NOT: cp.async
; CHECK: ret void
define void @read_after_a_barrier_and_a_copy(ptr addrspace(1) %x, ptr addrspace(1) %y) {
  %one = load <4 x float>, ptr addrspace(1) %x, align 16, !invariant.load !0
  store <4 x float> %one, ptr addrspace(3) @a, align 16
  call void @llvm.nvvm.barrier0()
  %x4 = getelementptr float, ptr addrspace(1) %x, i64 64
  %two = load <4 x float>, ptr addrspace(1) %x4, align 16, !invariant.load !0
  store <4 x float> %two, ptr addrspace(3) @a, align 16
  %w = load float, ptr addrspace(3) @a
  store float %w, ptr addrspace(1) %y
  call void @llvm.nvvm.barrier0()
  ret void
}

declare void @llvm.nvvm.barrier0()
!0 = !{}
