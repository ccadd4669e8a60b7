; The select between an address and Kiln's own memory becomes the predicate of the access: without it a load gives 0,
; and a store does nothing. The instruction names the address space where it is known.
; RUN: kiln-opt --passes=predicated-accesses %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer, align 64
@__kiln_sink = external global [64 x i8], align 16
@zeros = internal constant [64 x i8] zeroinitializer, align 64

; CHECK-LABEL: @loads(
; CHECK-NEXT: %[[VALUE:.*]] = call float asm sideeffect "{{.}} mov.b32 $0, 0; @$1 ld.b32 $0, [$2]; }", "=&f,b,l,~{memory}"(i1 %inside, ptr %p)
; CHECK-NOT: select
; CHECK: ret float %[[VALUE]]
define float @loads(ptr %p, i1 %inside) {
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_zeros.64
  %value = load float, ptr %guarded, align 4
  ret float %value
}

; CHECK-LABEL: @stores(
; CHECK-NEXT: call void asm sideeffect "@$0 st.b32 [$1], $2;", "b,l,f,~{memory}"(i1 %inside, ptr %p, float %value)
; CHECK-NEXT: ret void
define void @stores(ptr %p, i1 %inside, float %value) {
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_sink
  store float %value, ptr %guarded, align 4
  ret void
}

; CHECK-LABEL: @loads_global(
; CHECK: @$1 ld.global.b32 $0, [$2];
define i32 @loads_global(ptr addrspace(1) %p, i1 %inside) {
  %guarded = select i1 %inside, ptr addrspace(1) %p, ptr addrspace(1) addrspacecast (ptr @__kiln_zeros.64 to ptr addrspace(1))
  %value = load i32, ptr addrspace(1) %guarded, align 4
  ret i32 %value
}

; CHECK-LABEL: @stores_global(
; CHECK: @$0 st.global.b32 [$1], $2;
define void @stores_global(ptr addrspace(1) %p, i1 %inside, i32 %value) {
  %guarded = select i1 %inside, ptr addrspace(1) %p, ptr addrspace(1) addrspacecast (ptr @__kiln_sink to ptr addrspace(1))
  store i32 %value, ptr addrspace(1) %guarded, align 4
  ret void
}

; Threadgroup memory, whose address was made generic for the select.
; CHECK-LABEL: @loads_shared(
; CHECK: @$1 ld.shared.b32 $0, [$2]; {{.*}}(i1 %inside, ptr addrspace(3) %shared)
define float @loads_shared(ptr addrspace(3) %shared, i1 %inside) {
  %p = addrspacecast ptr addrspace(3) %shared to ptr
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_zeros.64
  %value = load float, ptr %guarded, align 4
  ret float %value
}
