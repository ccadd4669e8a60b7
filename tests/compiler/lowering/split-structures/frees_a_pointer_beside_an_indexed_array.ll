; A structure with a pointer and an array that is indexed at run time: the array becomes a variable of its own, and the
; pointer a value, so that the access through it is known to be one through the argument.
; RUN: kiln-opt --passes=split-structures %s | FileCheck %s

%cursor = type { ptr, [4 x float], i32 }

; CHECK-LABEL: define float @f(
; CHECK-NOT: alloca %cursor
; CHECK: [[ARRAY:%.*]] = alloca [4 x float]
; CHECK-NOT: alloca
; CHECK: store float %x, ptr
; CHECK-NOT: load ptr
; CHECK: %v = load float, ptr %in
; CHECK: ret float
define float @f(ptr %in, float %x, i64 %i, i64 %j) {
  %c = alloca %cursor, align 8
  store ptr %in, ptr %c
  %n = getelementptr %cursor, ptr %c, i64 0, i32 2
  store i32 4, ptr %n
  %a = getelementptr %cursor, ptr %c, i64 0, i32 1, i64 %i
  store float %x, ptr %a
  %p = load ptr, ptr %c
  %v = load float, ptr %p
  %b = getelementptr %cursor, ptr %c, i64 0, i32 1, i64 %j
  %w = load float, ptr %b
  %s = fadd float %v, %w
  ret float %s
}
