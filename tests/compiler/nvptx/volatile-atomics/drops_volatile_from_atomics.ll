; Metal's atomic functions take volatile objects. LLVM applies nothing that it knows about a pointer to a volatile
; access, so the atomics lose it; they keep their order.
; RUN: kiln-opt --passes=volatile-atomics %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: @atomics(
; CHECK-NOT: volatile
; CHECK: load atomic i32, ptr %p acquire
; CHECK: store atomic i32 %value, ptr %p release
; CHECK: atomicrmw add ptr %p, i32 1 monotonic
; CHECK: cmpxchg ptr %p, i32 0, i32 1 seq_cst monotonic
; CHECK: ret void
define void @atomics(ptr %p) {
  %value = load atomic volatile i32, ptr %p acquire, align 4
  store atomic volatile i32 %value, ptr %p release, align 4
  %old = atomicrmw volatile add ptr %p, i32 1 monotonic
  %exchanged = cmpxchg volatile ptr %p, i32 0, i32 1 seq_cst monotonic
  ret void
}
