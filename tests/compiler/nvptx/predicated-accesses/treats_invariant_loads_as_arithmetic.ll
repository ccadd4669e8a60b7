; A load of memory that does not change may be moved and merged like arithmetic, so its assembly has no side effect; in
; the global space it uses the read-only cache. Where another access may write the memory, neither holds.
; RUN: kiln-opt --passes=predicated-accesses %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer, align 64
@__kiln_sink = external global [64 x i8], align 16
@zeros = internal constant [64 x i8] zeroinitializer, align 64

; CHECK-LABEL: @invariant_global(
; CHECK: call float asm "{{.*}} ld.global.nc.b32 $0, [$2]; }", "=&f,b,l"(
define float @invariant_global(ptr addrspace(1) %p, i1 %inside) {
  %guarded = select i1 %inside, ptr addrspace(1) %p, ptr addrspace(1) addrspacecast (ptr @__kiln_zeros.64 to ptr addrspace(1))
  %value = load float, ptr addrspace(1) %guarded, align 4, !invariant.load !0
  ret float %value
}

; CHECK-LABEL: @invariant_generic(
; CHECK: call float asm sideeffect "{{.*}} ld.b32 $0, [$2]; }", "=&f,b,l,~{memory}"(
define float @invariant_generic(ptr %p, i1 %inside) {
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_zeros.64
  %value = load float, ptr %guarded, align 4, !invariant.load !0
  ret float %value
}

; CHECK-LABEL: @variable_global(
; CHECK: call float asm sideeffect "{{.*}} ld.global.b32 $0, [$2]; }", "=&f,b,l,~{memory}"(
define float @variable_global(ptr addrspace(1) %p, i1 %inside) {
  %guarded = select i1 %inside, ptr addrspace(1) %p, ptr addrspace(1) addrspacecast (ptr @__kiln_zeros.64 to ptr addrspace(1))
  %value = load float, ptr addrspace(1) %guarded, align 4
  ret float %value
}

!0 = !{}
