; Elements of two sizes, offsets of parts of elements, addresses that are stored, merged or chosen before an index is
; added, and variables without a variable index stay in one piece.
; RUN: kiln-opt --passes=interleaved-variables --remarks %s 2>%t | FileCheck %s
; RUN: FileCheck --check-prefix=REMARK %s < %t

; REMARK: its elements differ in size
; REMARK: its elements overlap
; REMARK: its address is stored

; CHECK-NOT: kiln.uniform
define float @two_sizes(float %v, i64 %i) {
  %w = alloca [16 x float], align 4
  %at = getelementptr float, ptr %w, i64 %i
  store float %v, ptr %at
  %byte = load i8, ptr %w
  %r = load float, ptr %at
  ret float %r
}

define float @parts(float %v, i64 %i) {
  %w = alloca [16 x float], align 4
  %at = getelementptr i8, ptr %w, i64 %i
  store float %v, ptr %at
  %r = load float, ptr %w
  ret float %r
}

define float @stored(float %v, i64 %i, ptr %to) {
  %w = alloca [16 x float], align 4
  %at = getelementptr float, ptr %w, i64 %i
  store float %v, ptr %at
  store ptr %at, ptr %to
  ret float %v
}

define float @merged(float %v, i64 %i, i1 %c) {
  %w = alloca [16 x float], align 4
  br i1 %c, label %a, label %b
a:
  %at = getelementptr float, ptr %w, i64 %i
  br label %b
b:
  %address = phi ptr [ %w, %0 ], [ %at, %a ]
  %r = load float, ptr %address
  ret float %r
}

define float @constant(float %v) {
  %w = alloca [2 x float], align 4
  %at = getelementptr float, ptr %w, i64 1
  store float %v, ptr %at
  %r = load float, ptr %w
  ret float %r
}
