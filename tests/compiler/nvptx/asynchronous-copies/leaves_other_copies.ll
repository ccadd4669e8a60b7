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

declare void @llvm.nvvm.barrier0()
!0 = !{}
