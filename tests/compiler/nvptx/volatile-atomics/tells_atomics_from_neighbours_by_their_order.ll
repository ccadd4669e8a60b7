; The weakest order, `unordered`, is one of an atomic; the same access without an order is none. Atomics that are not
; volatile stay as they are.
; RUN: kiln-opt --passes=volatile-atomics %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: @neighbours(
; CHECK-NEXT: %a = load atomic i32, ptr %p unordered, align 4
; CHECK-NEXT: %b = load volatile i32, ptr %p, align 4
; CHECK-NEXT: %c = load atomic i32, ptr %p seq_cst, align 4
; CHECK-NEXT: fence seq_cst
define i32 @neighbours(ptr %p) {
  %a = load atomic volatile i32, ptr %p unordered, align 4
  %b = load volatile i32, ptr %p, align 4
  %c = load atomic i32, ptr %p seq_cst, align 4
  fence seq_cst
  %ab = add i32 %a, %b
  %abc = add i32 %ab, %c
  ret i32 %abc
}
