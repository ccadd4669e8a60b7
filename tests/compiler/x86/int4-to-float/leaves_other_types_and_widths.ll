; Only whole registers of 16 words become floats by the table: not 8 words, not bytes, not halves, and no mask that
; differs from lane to lane or is not a constant.
; RUN: kiln-opt --passes=int4-to-float --cpu=x86-64-v4 %s | FileCheck %s

; CHECK-NOT: call {{.*}}permvar
define <8 x float> @eight(<8 x i32> %words) {
  %bits = and <8 x i32> %words, splat (i32 15)
  %floats = uitofp <8 x i32> %bits to <8 x float>
  ret <8 x float> %floats
}

define <16 x float> @bytes(<16 x i8> %words) {
  %bits = and <16 x i8> %words, splat (i8 15)
  %floats = uitofp <16 x i8> %bits to <16 x float>
  ret <16 x float> %floats
}

define <16 x half> @halves(<16 x i32> %words) {
  %bits = and <16 x i32> %words, splat (i32 15)
  %floats = uitofp <16 x i32> %bits to <16 x half>
  ret <16 x half> %floats
}

define <16 x float> @several_masks(<16 x i32> %words) {
  %bits = and <16 x i32> %words, <i32 7, i32 15, i32 7, i32 15, i32 7, i32 15, i32 7, i32 15, i32 7, i32 15, i32 7, i32 15, i32 7, i32 15, i32 7, i32 15>
  %floats = uitofp <16 x i32> %bits to <16 x float>
  ret <16 x float> %floats
}

define <16 x float> @unknown_mask(<16 x i32> %words, <16 x i32> %mask) {
  %bits = and <16 x i32> %words, %mask
  %floats = uitofp <16 x i32> %bits to <16 x float>
  ret <16 x float> %floats
}
