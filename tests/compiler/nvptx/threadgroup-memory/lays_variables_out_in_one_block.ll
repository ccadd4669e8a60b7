; Each variable is at its alignment, one after the other, in one block whose size is given at launch.
; RUN: kiln-opt --passes=threadgroup-variables,threadgroup-memory %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK: ; threadgroup-memory: 24 bytes
; CHECK: @kiln_threadgroup_memory = external addrspace(3) global [0 x i8], align 16
; CHECK-NOT: section
@bytes = internal global [5 x i8] undef, section "kiln.threadgroup"
@words = internal global [2 x i32] undef, section "kiln.threadgroup"

; CHECK-LABEL: define i32 @reads(
; CHECK-DAG: @kiln_threadgroup_memory
; CHECK-DAG: getelementptr inbounds (i8, ptr addrspace(3) @kiln_threadgroup_memory, i64 16)
; CHECK: ret i32
define i32 @reads() {
  %byte = load i8, ptr @bytes
  %word = load i32, ptr @words
  %wide = zext i8 %byte to i32
  %sum = add i32 %wide, %word
  ret i32 %sum
}
