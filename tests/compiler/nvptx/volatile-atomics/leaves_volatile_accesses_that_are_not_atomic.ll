; A volatile access of the kernel's own stays volatile.
; RUN: kiln-opt --passes=volatile-atomics %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: @accesses(
; CHECK-NEXT: %value = load volatile i32, ptr %p
; CHECK-NEXT: store volatile i32 %value, ptr %p
; CHECK-NEXT: call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 16, i1 true)
; CHECK-NEXT: ret void
define void @accesses(ptr %p) {
  %value = load volatile i32, ptr %p
  store volatile i32 %value, ptr %p
  call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 16, i1 true)
  ret void
}
