; The elements of a vector of pointers lie eight bytes apart.
; RUN: kiln-opt --passes=predicated-accesses %s | FileCheck %s
target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"
@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer, align 64
@__kiln_sink = external global [64 x i8], align 16

; CHECK-LABEL: define <2 x ptr> @load_pointers(
; CHECK: getelementptr i8, ptr %p, i64 8
define <2 x ptr> @load_pointers(ptr %p, i1 %inside) {
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_zeros.64
  %value = load <2 x ptr>, ptr %guarded, align 16
  ret <2 x ptr> %value
}

; CHECK-LABEL: define void @store_pointers(
; CHECK: getelementptr i8, ptr %p, i64 8
define void @store_pointers(ptr %p, i1 %inside, <2 x ptr> %value) {
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_sink
  store <2 x ptr> %value, ptr %guarded, align 16
  ret void
}
