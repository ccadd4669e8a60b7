; An element that no one asks for is poison: a register with such elements is not the vector that it was taken from.
; RUN: kiln-opt --passes=compose-shuffles --cpu=x86-64-v4 %s | FileCheck %s

; CHECK-LABEL: define <8 x i32> @others_are_asked_for_later(
; CHECK: shufflevector <16 x i32> %x, <16 x i32> poison, <8 x i32> <i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8>
define <8 x i32> @others_are_asked_for_later(<16 x i32> %x) {
  %slice = shufflevector <16 x i32> %x, <16 x i32> poison, <8 x i32> <i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11>
  %wide = shufflevector <8 x i32> %slice, <8 x i32> poison, <16 x i32> <i32 poison, i32 poison, i32 poison, i32 poison, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 poison, i32 poison, i32 poison, i32 poison>
  %sum = add <16 x i32> %wide, %wide
  %other = shufflevector <16 x i32> %x, <16 x i32> poison, <8 x i32> <i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8>
  %part = shufflevector <16 x i32> %sum, <16 x i32> poison, <8 x i32> <i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11>
  %r = add <8 x i32> %other, %part
  ret <8 x i32> %r
}
