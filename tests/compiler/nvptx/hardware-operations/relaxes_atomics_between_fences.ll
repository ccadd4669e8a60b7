; LLVM drops the order of a read-modify-write for this target. So ordered atomics become relaxed ones with fences:
; before it for a release, after it for an acquire, and on both sides for the sequentially consistent order.
; RUN: kiln-opt --passes=hardware-operations %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: @releases(
; CHECK: call void @llvm.nvvm.membar.gl()
; CHECK-NEXT: atomicrmw add ptr %p, i32 1 monotonic
; CHECK-NEXT: ret i32
define i32 @releases(ptr %p) {
  %old = atomicrmw add ptr %p, i32 1 release
  ret i32 %old
}

; CHECK-LABEL: @acquires(
; CHECK-NEXT: %value = load atomic i32, ptr %p monotonic
; CHECK-NEXT: call void @llvm.nvvm.membar.gl()
; CHECK-NEXT: ret i32 %value
define i32 @acquires(ptr %p) {
  %value = load atomic i32, ptr %p acquire, align 4
  ret i32 %value
}

; CHECK-LABEL: @exchanges(
; CHECK: call void @llvm.nvvm.membar.gl()
; CHECK-NEXT: cmpxchg ptr %p, i32 0, i32 1 monotonic monotonic
; CHECK-NEXT: call void @llvm.nvvm.membar.gl()
; CHECK: ret void
define void @exchanges(ptr %p) {
  %old = cmpxchg ptr %p, i32 0, i32 1 acq_rel acquire
  ret void
}

; CHECK-LABEL: @sequential(
; CHECK: call void @llvm.nvvm.membar.gl()
; CHECK: store atomic i32 1, ptr %p monotonic
; CHECK: call void @llvm.nvvm.membar.gl()
; CHECK: load atomic i32, ptr %p monotonic
; CHECK: call void @llvm.nvvm.membar.gl()
; CHECK: ret i32
define i32 @sequential(ptr %p) {
  store atomic i32 1, ptr %p seq_cst, align 4
  %value = load atomic i32, ptr %p seq_cst, align 4
  ret i32 %value
}

; A fence is one of the whole GPU; one for a single thread needs no instruction.
; CHECK-LABEL: @fences(
; CHECK-NEXT: call void @llvm.nvvm.membar.gl()
; CHECK-NEXT: ret void
define void @fences() {
  fence acq_rel
  fence syncscope("singlethread") acq_rel
  ret void
}
