; 16 bytes that are aligned to 4 take one instruction for each component, at its own address. So do three components. A
; single number that is not aligned keeps its select.
; RUN: kiln-opt --passes=predicated-accesses %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer, align 64
@__kiln_sink = external global [64 x i8], align 16
@zeros = internal constant [64 x i8] zeroinitializer, align 64

; CHECK-LABEL: @float4(
; CHECK: ld.b32 {{.*}}(i1 %inside, ptr %{{.*}})
; CHECK: %[[B:.*]] = getelementptr i8, ptr %p, i64 4
; CHECK: ld.b32 {{.*}}(i1 %inside, ptr %[[B]])
; CHECK: %[[C:.*]] = getelementptr i8, ptr %p, i64 8
; CHECK: ld.b32 {{.*}}(i1 %inside, ptr %[[C]])
; CHECK: %[[D:.*]] = getelementptr i8, ptr %p, i64 12
; CHECK: ld.b32 {{.*}}(i1 %inside, ptr %[[D]])
; CHECK-NOT: ld.
; CHECK: ret
define <4 x float> @float4(ptr %p, i1 %inside) {
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_zeros.64
  %value = load <4 x float>, ptr %guarded, align 4
  ret <4 x float> %value
}

; CHECK-LABEL: @float3(
; CHECK-COUNT-3: st.b32
; CHECK-NOT: st.
; CHECK: ret
define void @float3(ptr %p, i1 %inside, <3 x float> %value) {
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_sink
  store <3 x float> %value, ptr %guarded, align 16
  ret void
}

; CHECK-LABEL: @misaligned(
; CHECK: %guarded = select
; CHECK: load float, ptr %guarded, align 2
define float @misaligned(ptr %p, i1 %inside) {
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_zeros.64
  %value = load float, ptr %guarded, align 2
  ret float %value
}
