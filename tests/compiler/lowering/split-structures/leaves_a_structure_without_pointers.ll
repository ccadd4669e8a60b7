; Only pointers lose something in memory: a structure of numbers stays whole.
; RUN: kiln-opt --passes=split-structures %s | FileCheck %s

%numbers = type { i32, [4 x float] }

; CHECK-LABEL: define float @f(
; CHECK: %c = alloca %numbers
; CHECK: store i32 %n, ptr %c
; CHECK: %b = getelementptr %numbers, ptr %c, i64 0, i32 1, i64 %i
define float @f(i32 %n, i64 %i) {
  %c = alloca %numbers, align 4
  store i32 %n, ptr %c
  %b = getelementptr %numbers, ptr %c, i64 0, i32 1, i64 %i
  %w = load float, ptr %b
  ret float %w
}
