; Of three adjacent halves, the two that are aligned together become a pair.
; RUN: kiln-opt --passes=adjacent-loads %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@__kiln_zeros.64 = internal addrspace(1) constant [64 x i8] zeroinitializer, align 64

; CHECK-LABEL: @three(
; CHECK: load <2 x half>, ptr addrspace(1) %{{.*}}, align 4, !invariant.load
; CHECK: load half, ptr addrspace(1)
; CHECK-NOT: = load
; CHECK: ret
define half @three(ptr addrspace(101) %block, i32 %i, i1 %inside) {
  %x = load ptr addrspace(1), ptr addrspace(101) %block, align 8, !align !1
  %even = shl i32 %i, 1
  %wide = zext i32 %even to i64
  %p = getelementptr half, ptr addrspace(1) %x, i64 %wide
  %p1 = getelementptr i8, ptr addrspace(1) %p, i64 2
  %p2 = getelementptr i8, ptr addrspace(1) %p, i64 4
  %s0 = select i1 %inside, ptr addrspace(1) %p, ptr addrspace(1) @__kiln_zeros.64
  %v0 = load half, ptr addrspace(1) %s0, !invariant.load !0
  %s1 = select i1 %inside, ptr addrspace(1) %p1, ptr addrspace(1) @__kiln_zeros.64
  %v1 = load half, ptr addrspace(1) %s1, !invariant.load !0
  %s2 = select i1 %inside, ptr addrspace(1) %p2, ptr addrspace(1) @__kiln_zeros.64
  %v2 = load half, ptr addrspace(1) %s2, !invariant.load !0
  %a = fadd half %v0, %v1
  %b = fadd half %a, %v2
  ret half %b
}

!0 = !{}
!1 = !{i64 16}
