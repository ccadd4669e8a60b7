; Only variables with a sink's name are defined: a kernel's own variable that is declared, or that nothing uses, stays.
; RUN: kiln-opt --passes=share-sinks %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-DAG: @table = external global [64 x i8], align 16
; CHECK-DAG: @unused = external global i32
; CHECK-DAG: @kiln_sink = external global [64 x i8]
; CHECK-DAG: @__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer
@table = external global [64 x i8], align 16
@unused = external global i32
@kiln_sink = external global [64 x i8]
@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer

define i32 @reads() {
  %a = load i32, ptr @table
  %b = load i32, ptr @kiln_sink
  %sum = add i32 %a, %b
  ret i32 %sum
}
