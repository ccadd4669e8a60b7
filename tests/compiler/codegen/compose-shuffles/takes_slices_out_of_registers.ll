; Lanes of 32 that do not begin at a multiple of their number, of which a shuffle repeats some: one permutation of a
; register. The same of a shifted integer and of an element of a vector of large integers.
; RUN: kiln-opt --passes=compose-shuffles --cpu=x86-64-v4 %s | FileCheck %s --check-prefixes=CHECK,WIDE
; RUN: kiln-opt --passes=compose-shuffles --cpu=x86-64-v3 %s | FileCheck %s --check-prefixes=CHECK,NARROW

; Elements 16 and 24 are in one register of 16; of 8, each in its own.
; CHECK-LABEL: define <16 x float> @slice(
; WIDE: [[HIGH:%.+]] = shufflevector <32 x float> %x, <32 x float> poison, <16 x i32> <i32 16, i32 17, i32 18, i32 19,
; WIDE-NEXT: [[TWO:%.+]] = shufflevector <16 x float> [[HIGH]], <16 x float> poison, <16 x i32> <i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 0, i32 8, i32 8, i32 8, i32 8, i32 8, i32 8, i32 8, i32 8>
; WIDE-NEXT: ret <16 x float> [[TWO]]
; NARROW: shufflevector <8 x float> %{{.+}}, <8 x float> poison, <8 x i32> zeroinitializer
; NARROW: shufflevector <8 x float> %{{.+}}, <8 x float> poison, <8 x i32> zeroinitializer
define <16 x float> @slice(<32 x float> %x) {
  %slice = shufflevector <32 x float> %x, <32 x float> poison, <16 x i32> <i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24>
  %two = shufflevector <16 x float> %slice, <16 x float> poison, <16 x i32> <i32 7, i32 7, i32 7, i32 7, i32 7, i32 7, i32 7, i32 7, i32 15, i32 15, i32 15, i32 15, i32 15, i32 15, i32 15, i32 15>
  ret <16 x float> %two
}

; CHECK-LABEL: define <8 x float> @shifted(
; CHECK-NOT: lshr
; WIDE: shufflevector <16 x float> %{{.+}}, <16 x float> %{{.+}}, <8 x i32> <i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16>
; NARROW: shufflevector <8 x float> %{{.+}}, <8 x float> %{{.+}}, <8 x i32> <i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8>
; CHECK-NEXT: ret
define <8 x float> @shifted(<32 x float> %x) {
  %bits = bitcast <32 x float> %x to i1024
  %shifted = lshr i1024 %bits, 288
  %low = trunc i1024 %shifted to i256
  %slice = bitcast i256 %low to <8 x float>
  ret <8 x float> %slice
}

; CHECK-LABEL: define <8 x float> @quarter(
; CHECK-NOT: extractelement
; WIDE: shufflevector <16 x float> %{{.+}}, <16 x float> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
; NARROW: shufflevector <32 x float> %x, <32 x float> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
define <8 x float> @quarter(<32 x float> %x) {
  %bits = bitcast <32 x float> %x to <4 x i256>
  %one = extractelement <4 x i256> %bits, i64 1
  %slice = bitcast i256 %one to <8 x float>
  ret <8 x float> %slice
}

; CHECK-LABEL: define float @one_element(
; CHECK-NEXT: [[ONE:%.+]] = extractelement <32 x i32> %x, i64 9
; CHECK-NEXT: [[BITS:%.+]] = bitcast i32 [[ONE]] to float
; CHECK-NEXT: ret float [[BITS]]
define float @one_element(<32 x i32> %x) {
  %bits = bitcast <32 x i32> %x to i1024
  %shifted = lshr i1024 %bits, 288
  %low = trunc i1024 %shifted to i32
  %one = bitcast i32 %low to float
  ret float %one
}
