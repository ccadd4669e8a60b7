; An atomic of one byte accesses the word around it, which must lie in the block. A larger alignment leaves a gap.
; RUN: kiln-opt --passes=threadgroup-variables,threadgroup-memory %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK: ; threadgroup-memory: 132 bytes
@first = internal global [1 x i8] undef, section "kiln.threadgroup"
@aligned = internal global [1 x i8] undef, section "kiln.threadgroup", align 128

; CHECK-LABEL: define i8 @reads(
; CHECK: getelementptr inbounds (i8, ptr addrspace(3) @kiln_threadgroup_memory, i64 128)
define i8 @reads() {
  %a = load i8, ptr @first
  %b = load i8, ptr @aligned
  %sum = add i8 %a, %b
  ret i8 %sum
}
