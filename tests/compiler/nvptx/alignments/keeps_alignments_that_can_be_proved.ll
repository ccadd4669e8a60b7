; An index that is shifted left is a multiple, so the access keeps its alignment, or gets more than Clang has given it.
; RUN: kiln-opt --passes=alignments %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: @shifted(
; CHECK: load <4 x float>, ptr %address, align 16
define <4 x float> @shifted(ptr align 16 %x, i64 %i) {
  %four = shl i64 %i, 2
  %address = getelementptr float, ptr %x, i64 %four
  %value = load <4 x float>, ptr %address, align 16
  ret <4 x float> %value
}

; One bit less.
; CHECK-LABEL: @shifted_by_one(
; CHECK: load <4 x float>, ptr %address, align 8
define <4 x float> @shifted_by_one(ptr align 16 %x, i64 %i) {
  %two = shl i64 %i, 1
  %address = getelementptr float, ptr %x, i64 %two
  %value = load <4 x float>, ptr %address, align 16
  ret <4 x float> %value
}

; CHECK-LABEL: @claims_less(
; CHECK: load <4 x float>, ptr %x, align 16
define <4 x float> @claims_less(ptr align 16 %x) {
  %value = load <4 x float>, ptr %x, align 4
  ret <4 x float> %value
}

; Down from the end, in another address space.
; CHECK-LABEL: @backwards(
; CHECK: load <4 x float>, ptr addrspace(1) %address, align 16
define <4 x float> @backwards(ptr align 16 %x) {
  %global = addrspacecast ptr %x to ptr addrspace(1)
  %address = getelementptr i8, ptr addrspace(1) %global, i64 -32
  %value = load <4 x float>, ptr addrspace(1) %address, align 16
  ret <4 x float> %value
}
