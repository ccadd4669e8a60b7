; A variable that is in the shared space already stays the same, so running the pass again changes nothing.
; RUN: kiln-opt --passes=threadgroup-variables,threadgroup-variables %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK: @__kiln_shared = internal addrspace(3) global [4 x i8] poison, section "kiln.threadgroup", align 16
; CHECK-NOT: @__kiln_shared{{[.0-9]}}
; CHECK: load i32, ptr addrspacecast (ptr addrspace(3) @__kiln_shared to ptr)
@tile = internal global [4 x i8] undef, section "kiln.threadgroup", align 4

define i32 @reads() {
  %value = load i32, ptr @tile
  ret i32 %value
}
