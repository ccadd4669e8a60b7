; One use in any function suffices, also through a constant expression.
; RUN: kiln-opt --passes=share-sinks %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK: @__kiln_sink = internal global [64 x i8] zeroinitializer, align 16
; CHECK-NOT: @__kiln_sink.1
@__kiln_sink = external global [64 x i8], align 16
@__kiln_sink.1 = external global [64 x i8], align 16

define void @first() {
  ret void
}

; CHECK-LABEL: @second(
; CHECK: store i32 1, ptr getelementptr (i8, ptr @__kiln_sink, i64 8)
define void @second() {
  store i32 1, ptr getelementptr (i8, ptr @__kiln_sink, i64 8)
  ret void
}
