; After accesses have become predicated, most sinks have no users. They are deleted; so is one with only an address
; computed from it that has no user itself.
; RUN: kiln-opt --passes=share-sinks %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-NOT: __kiln_sink
; CHECK-LABEL: @nothing(
; CHECK-NOT: __kiln_sink
@__kiln_sink = external global [64 x i8], align 16
@__kiln_sink.1 = external global [64 x i8], align 16

define void @nothing() {
  ret void
}
