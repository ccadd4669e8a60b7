; LLVM composes shuffles of registers, takes registers out of vectors, and splits shuffles of equally long vectors. Nor
; are elements of 2 bytes, or a shift by a variable, any slice.
; RUN: kiln-opt --passes=compose-shuffles --cpu=x86-64-v4 %s | FileCheck %s

; CHECK-LABEL: define <16 x float> @second_register(
; CHECK-NEXT: [[HIGH:%.+]] = shufflevector <32 x float> %x
; CHECK-NEXT: shufflevector <16 x float> [[HIGH]]
; CHECK-NEXT: ret
define <16 x float> @second_register(<32 x float> %x) {
  %high = shufflevector <32 x float> %x, <32 x float> poison, <16 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %first = shufflevector <16 x float> %high, <16 x float> poison, <16 x i32> zeroinitializer
  ret <16 x float> %first
}

; CHECK-LABEL: define <32 x i32> @as_long_as_its_operand(
; CHECK-NEXT: shufflevector <32 x i32> %x
; CHECK-NEXT: ret
define <32 x i32> @as_long_as_its_operand(<32 x i32> %x) {
  %rotated = shufflevector <32 x i32> %x, <32 x i32> poison, <32 x i32> <i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31, i32 0>
  ret <32 x i32> %rotated
}

; CHECK-LABEL: define <4 x i16> @of_two_bytes(
; CHECK-NEXT: shufflevector <16 x i16> %x
; CHECK-NEXT: ret
define <4 x i16> @of_two_bytes(<16 x i16> %x) {
  %slice = shufflevector <16 x i16> %x, <16 x i16> poison, <4 x i32> <i32 3, i32 4, i32 5, i32 6>
  ret <4 x i16> %slice
}

; CHECK-LABEL: define float @by_a_variable(
; CHECK: lshr i1024
define float @by_a_variable(<32 x float> %x, i1024 %by) {
  %bits = bitcast <32 x float> %x to i1024
  %shifted = lshr i1024 %bits, %by
  %low = trunc i1024 %shifted to i32
  %one = bitcast i32 %low to float
  ret float %one
}

; Within an element.
; CHECK-LABEL: define <2 x float> @between_elements(
; CHECK: lshr i1024
define <2 x float> @between_elements(<32 x float> %x) {
  %bits = bitcast <32 x float> %x to i1024
  %shifted = lshr i1024 %bits, 48
  %low = trunc i1024 %shifted to i64
  %two = bitcast i64 %low to <2 x float>
  ret <2 x float> %two
}
