; An atomic cannot be split into smaller accesses, so it keeps the alignment that it must have.
; RUN: kiln-opt --passes=alignments %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: @atomics(
; CHECK: load atomic i32, ptr %address monotonic, align 4
; CHECK: store atomic i32 %value, ptr %address monotonic, align 4
; CHECK: atomicrmw add ptr %address, i32 1 monotonic, align 4
define void @atomics(ptr align 4 %x) {
  %address = getelementptr i8, ptr %x, i64 2
  %value = load atomic i32, ptr %address monotonic, align 4
  store atomic i32 %value, ptr %address monotonic, align 4
  %old = atomicrmw add ptr %address, i32 1 monotonic, align 4
  ret void
}
