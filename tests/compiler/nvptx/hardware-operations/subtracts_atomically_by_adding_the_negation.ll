; PTX has no atomic subtraction of floats. That of integers, which has one, and relaxed atomics stay without a fence.
; RUN: kiln-opt --passes=hardware-operations %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: @floats(
; CHECK-NEXT: %[[MINUS:.*]] = fneg float %x
; CHECK-NEXT: %old = atomicrmw fadd ptr %p, float %[[MINUS]] monotonic
; CHECK-NEXT: ret float %old
define float @floats(ptr %p, float %x) {
  %old = atomicrmw fsub ptr %p, float %x monotonic
  ret float %old
}

; CHECK-LABEL: @integers(
; CHECK-NEXT: %old = atomicrmw sub ptr %p, i32 %x monotonic
; CHECK-NEXT: ret i32 %old
define i32 @integers(ptr %p, i32 %x) {
  %old = atomicrmw sub ptr %p, i32 %x monotonic
  ret i32 %old
}
