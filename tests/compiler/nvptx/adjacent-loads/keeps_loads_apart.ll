; Loads stay single if their guards differ, if a store lies between them, or if the vector would not be aligned.
; RUN: kiln-opt --passes=adjacent-loads %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@__kiln_zeros.64 = internal addrspace(1) constant [64 x i8] zeroinitializer, align 64
@tile = internal addrspace(3) global [64 x float] poison, align 16

; CHECK-LABEL: @other_guards(
; CHECK-COUNT-2: load float, ptr
define float @other_guards(i32 %i, i1 %one, i1 %two) {
  %first = and i32 %i, 60
  %p = getelementptr [64 x float], ptr addrspace(3) @tile, i64 0, i32 %first
  %p1 = getelementptr i8, ptr addrspace(3) %p, i64 4
  %g0 = addrspacecast ptr addrspace(3) %p to ptr
  %g1 = addrspacecast ptr addrspace(3) %p1 to ptr
  %s0 = select i1 %one, ptr %g0, ptr addrspacecast (ptr addrspace(1) @__kiln_zeros.64 to ptr)
  %v0 = load float, ptr %s0
  %s1 = select i1 %two, ptr %g1, ptr addrspacecast (ptr addrspace(1) @__kiln_zeros.64 to ptr)
  %v1 = load float, ptr %s1
  %sum = fadd float %v0, %v1
  ret float %sum
}

; CHECK-LABEL: @store_between(
; CHECK-COUNT-2: load float, ptr
define float @store_between(i32 %i, i1 %inside, ptr addrspace(3) %q) {
  %first = and i32 %i, 60
  %p = getelementptr [64 x float], ptr addrspace(3) @tile, i64 0, i32 %first
  %p1 = getelementptr i8, ptr addrspace(3) %p, i64 4
  %g0 = addrspacecast ptr addrspace(3) %p to ptr
  %g1 = addrspacecast ptr addrspace(3) %p1 to ptr
  %s0 = select i1 %inside, ptr %g0, ptr addrspacecast (ptr addrspace(1) @__kiln_zeros.64 to ptr)
  %v0 = load float, ptr %s0
  store float 1.0, ptr addrspace(3) %q
  %s1 = select i1 %inside, ptr %g1, ptr addrspacecast (ptr addrspace(1) @__kiln_zeros.64 to ptr)
  %v1 = load float, ptr %s1
  %sum = fadd float %v0, %v1
  ret float %sum
}

; CHECK-LABEL: @unaligned(
; CHECK-COUNT-2: load float, ptr
define float @unaligned(i32 %i, i1 %inside) {
  %p = getelementptr [64 x float], ptr addrspace(3) @tile, i64 0, i32 %i
  %p1 = getelementptr i8, ptr addrspace(3) %p, i64 4
  %g0 = addrspacecast ptr addrspace(3) %p to ptr
  %g1 = addrspacecast ptr addrspace(3) %p1 to ptr
  %s0 = select i1 %inside, ptr %g0, ptr addrspacecast (ptr addrspace(1) @__kiln_zeros.64 to ptr)
  %v0 = load float, ptr %s0
  %s1 = select i1 %inside, ptr %g1, ptr addrspacecast (ptr addrspace(1) @__kiln_zeros.64 to ptr)
  %v1 = load float, ptr %s1
  %sum = fadd float %v0, %v1
  ret float %sum
}
