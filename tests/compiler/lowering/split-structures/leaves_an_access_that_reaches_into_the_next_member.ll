; The border is an access of the last number before another member: one of 4 bytes is inside, one of 8 bytes reaches
; across and keeps the structure whole. So does an index that is not constant where it steps from structure to
; structure.
; RUN: kiln-opt --passes=split-structures %s | FileCheck %s

%cursor = type { ptr, [2 x float], i32, i32 }

; CHECK-LABEL: define float @inside(
; CHECK-NOT: alloca %cursor
; CHECK: alloca [2 x float]
; CHECK-NOT: load ptr
; CHECK: ret float
define float @inside(ptr %in, i64 %i) {
  %c = alloca %cursor, align 8
  store ptr %in, ptr %c
  %n = getelementptr %cursor, ptr %c, i64 0, i32 2
  store i32 1, ptr %n
  %b = getelementptr %cursor, ptr %c, i64 0, i32 1, i64 %i
  store float 1.0, ptr %b
  %p = load ptr, ptr %c
  %w = load float, ptr %p
  ret float %w
}

; CHECK-LABEL: define float @across(
; CHECK: %c = alloca %cursor
; CHECK: store i64 1, ptr %n
define float @across(ptr %in, i64 %i) {
  %c = alloca %cursor, align 8
  store ptr %in, ptr %c
  %n = getelementptr %cursor, ptr %c, i64 0, i32 2
  store i64 1, ptr %n
  %b = getelementptr %cursor, ptr %c, i64 0, i32 1, i64 %i
  store float 1.0, ptr %b
  %p = load ptr, ptr %c
  %w = load float, ptr %p
  ret float %w
}

; CHECK-LABEL: define float @whole_structures(
; CHECK: %c = alloca %cursor
; CHECK: %b = getelementptr %cursor, ptr %c, i64 %i
define float @whole_structures(ptr %in, i64 %i) {
  %c = alloca %cursor, align 8
  store ptr %in, ptr %c
  %b = getelementptr %cursor, ptr %c, i64 %i, i32 1, i64 0
  store float 1.0, ptr %b
  %p = load ptr, ptr %c
  %w = load float, ptr %p
  ret float %w
}
