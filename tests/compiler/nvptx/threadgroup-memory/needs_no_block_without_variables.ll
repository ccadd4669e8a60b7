; Constants and variables of other sections are no threadgroup memory.
; RUN: kiln-opt --passes=threadgroup-variables,threadgroup-memory %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK: ; threadgroup-memory: 0 bytes
; CHECK-NOT: kiln_threadgroup_memory
; CHECK: @table = internal constant [2 x i32]
; CHECK: @other = internal global i32 undef, section "kiln.other"
; CHECK-NOT: kiln_threadgroup_memory
@table = internal constant [2 x i32] [i32 1, i32 2]
@other = internal global i32 undef, section "kiln.other"

define i32 @reads() {
  %a = load i32, ptr @table
  %b = load i32, ptr @other
  %sum = add i32 %a, %b
  ret i32 %sum
}
