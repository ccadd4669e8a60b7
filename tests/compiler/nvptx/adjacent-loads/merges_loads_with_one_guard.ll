; Four loads of one row of a tile with one guard become one load of a vector, where the first of them was. Their order
; does not matter.
; RUN: kiln-opt --passes=adjacent-loads %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@__kiln_zeros.64 = internal addrspace(1) constant [64 x i8] zeroinitializer, align 64
@tile = internal addrspace(3) global [64 x float] poison, align 16

; CHECK-LABEL: @row(
; CHECK: %[[ADDRESS:.*]] = getelementptr i8, ptr addrspace(3) %p, i64 0
; CHECK: %[[GENERIC:.*]] = addrspacecast ptr addrspace(3) %[[ADDRESS]] to ptr
; CHECK: %[[GUARDED:.*]] = select i1 %inside, ptr %[[GENERIC]], ptr addrspacecast (ptr addrspace(1) @__kiln_zeros.64 to ptr)
; CHECK: %[[ROW:.*]] = load <4 x float>, ptr %[[GUARDED]], align 16
; CHECK-NOT: = load
; CHECK: ret
define <4 x float> @row(i32 %i, i1 %inside) {
  %first = and i32 %i, 60
  %p = getelementptr [64 x float], ptr addrspace(3) @tile, i64 0, i32 %first
  %p1 = getelementptr i8, ptr addrspace(3) %p, i64 4
  %p2 = getelementptr i8, ptr addrspace(3) %p, i64 8
  %p3 = getelementptr i8, ptr addrspace(3) %p, i64 12
  %g0 = addrspacecast ptr addrspace(3) %p to ptr
  %g1 = addrspacecast ptr addrspace(3) %p1 to ptr
  %g2 = addrspacecast ptr addrspace(3) %p2 to ptr
  %g3 = addrspacecast ptr addrspace(3) %p3 to ptr
  %s2 = select i1 %inside, ptr %g2, ptr addrspacecast (ptr addrspace(1) @__kiln_zeros.64 to ptr)
  %v2 = load float, ptr %s2
  %s0 = select i1 %inside, ptr %g0, ptr addrspacecast (ptr addrspace(1) @__kiln_zeros.64 to ptr)
  %v0 = load float, ptr %s0
  %s1 = select i1 %inside, ptr %g1, ptr addrspacecast (ptr addrspace(1) @__kiln_zeros.64 to ptr)
  %v1 = load float, ptr %s1
  %s3 = select i1 %inside, ptr %g3, ptr addrspacecast (ptr addrspace(1) @__kiln_zeros.64 to ptr)
  %v3 = load float, ptr %s3
  %a = insertelement <4 x float> poison, float %v0, i64 0
  %b = insertelement <4 x float> %a, float %v1, i64 1
  %c = insertelement <4 x float> %b, float %v2, i64 2
  %d = insertelement <4 x float> %c, float %v3, i64 3
  ret <4 x float> %d
}
