; The access becomes a predicated one, but the address is still compared with another.
; RUN: kiln-opt --passes=predicated-accesses %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer, align 64
@__kiln_sink = external global [64 x i8], align 16
@zeros = internal constant [64 x i8] zeroinitializer, align 64

; CHECK-LABEL: @compared(
; CHECK: %guarded = select i1 %inside
; CHECK: @$0 st.b32 [$1], $2;
; CHECK: icmp eq ptr %guarded, %other
define i1 @compared(ptr %p, ptr %other, i1 %inside) {
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_sink
  store i32 1, ptr %guarded, align 4
  %same = icmp eq ptr %guarded, %other
  ret i1 %same
}
