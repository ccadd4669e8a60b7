; A sink that an access still uses gets memory of its own in the module, shared by all threads: none of them reads it.
; RUN: kiln-opt --passes=share-sinks %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK: @__kiln_sink = internal global [64 x i8] zeroinitializer, align 16
; CHECK: @__kiln_sink.1 = internal global <4 x float> zeroinitializer, align 16
@__kiln_sink = external global [64 x i8], align 16
@__kiln_sink.1 = external global <4 x float>, align 16

; CHECK-LABEL: @stores(
; CHECK: select i1 %inside, ptr %p, ptr @__kiln_sink
define void @stores(ptr %p, i1 %inside) {
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_sink
  store i32 1, ptr %guarded
  %second = select i1 %inside, ptr %p, ptr @__kiln_sink.1
  store <4 x float> zeroinitializer, ptr %second
  ret void
}
