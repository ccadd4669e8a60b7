; A threadgroup variable becomes one of the shared address space, without a value at the start. Its users go on with a
; generic address. Variables stay apart, so that the optimizer knows that they do not alias.
; RUN: kiln-opt --passes=threadgroup-variables %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-NOT: @tile
; CHECK: @__kiln_shared = internal addrspace(3) global [32 x float] poison, section "kiln.threadgroup", align 16
; CHECK: @[[COUNT:__kiln_shared[.]?1]] = internal addrspace(3) global i32 poison, section "kiln.threadgroup", align 16
@tile = internal global [32 x float] undef, section "kiln.threadgroup", align 4
@count = internal global i32 undef, section "kiln.threadgroup", align 4

; CHECK-LABEL: @stores(
; CHECK: getelementptr float, ptr addrspacecast (ptr addrspace(3) @__kiln_shared to ptr), i64 %i
; CHECK: store i32 1, ptr addrspacecast (ptr addrspace(3) @[[COUNT]] to ptr)
define void @stores(i64 %i) {
  %address = getelementptr float, ptr @tile, i64 %i
  store float 1.0, ptr %address
  store i32 1, ptr @count
  ret void
}
