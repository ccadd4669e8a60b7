; Three components are stored as four. The fourth lane becomes zero, or any other lane if the shuffle has two vectors:
; as poison it would spoil the others where the vector is copied as an integer. Shuffles whose lanes are all known stay.
; RUN: kiln-opt --passes=defined-arithmetic %s | FileCheck %s

; CHECK-LABEL: define <4 x float> @one_vector(
; CHECK: %w = shufflevector <3 x float> %v, <3 x float> zeroinitializer, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
define <4 x float> @one_vector(<3 x float> %v) {
  %w = shufflevector <3 x float> %v, <3 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 poison>
  ret <4 x float> %w
}

; CHECK-LABEL: define <4 x float> @two_vectors(
; CHECK-NOT: poison
; CHECK: %w = shufflevector <2 x float> %a, <2 x float> %b, <4 x i32> <i32 0, i32 1, i32 2, i32 {{[0-3]}}>
define <4 x float> @two_vectors(<2 x float> %a, <2 x float> %b) {
  %w = shufflevector <2 x float> %a, <2 x float> %b, <4 x i32> <i32 0, i32 1, i32 2, i32 poison>
  ret <4 x float> %w
}

; CHECK-LABEL: define <3 x float> @all_known(
; CHECK: %v = shufflevector <4 x float> %w, <4 x float> poison, <3 x i32> <i32 0, i32 1, i32 2>
define <3 x float> @all_known(<4 x float> %w) {
  %v = shufflevector <4 x float> %w, <4 x float> poison, <3 x i32> <i32 0, i32 1, i32 2>
  ret <3 x float> %v
}
