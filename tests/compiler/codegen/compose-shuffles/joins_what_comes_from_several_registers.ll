; A slice itself is made of all registers that it comes from. A shuffle of slices is composed only if one instruction
; permutes what each of its registers comes from: two registers where there is such an instruction, otherwise one.
; RUN: kiln-opt --passes=compose-shuffles --cpu=x86-64-v4 %s | FileCheck %s --check-prefixes=CHECK,WIDE
; RUN: kiln-opt --passes=compose-shuffles --cpu=x86-64-v3 %s | FileCheck %s --check-prefixes=CHECK,NARROW

; CHECK-LABEL: define <16 x i32> @two_registers(
; WIDE: shufflevector <16 x i32> %{{.+}}, <16 x i32> %{{.+}}, <16 x i32> <i32 4, i32 21, i32 4, i32 21,
; WIDE-NEXT: ret
; Of the slice, and then of its first elements.
; NARROW: [[SLICE:%.+]] = shufflevector <8 x i32> %{{.+}}, <8 x i32> %{{.+}}, <16 x i32>
; NARROW: shufflevector <16 x i32> [[SLICE]], <16 x i32> poison, <16 x i32> <i32 15, i32 0, i32 15, i32 0,
define <16 x i32> @two_registers(<32 x i32> %x) {
  %slice = shufflevector <32 x i32> %x, <32 x i32> poison, <16 x i32> <i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 17, i32 18, i32 19, i32 20>
  %ends = shufflevector <16 x i32> %slice, <16 x i32> poison, <16 x i32> <i32 15, i32 0, i32 15, i32 0, i32 15, i32 0, i32 15, i32 0, i32 15, i32 0, i32 15, i32 0, i32 15, i32 0, i32 15, i32 0>
  ret <16 x i32> %ends
}

; Every eleventh element: of three registers of 16.
; CHECK-LABEL: define <4 x float> @three_registers(
; WIDE: [[TWO:%.+]] = shufflevector <16 x float> %{{.+}}, <16 x float> %{{.+}}, <16 x i32> <i32 0, i32 11, i32 22, i32 poison,
; WIDE-NEXT: shufflevector <16 x float> [[TWO]], <16 x float> %{{.+}}, <4 x i32> <i32 0, i32 1, i32 2, i32 17>
; CHECK: ret
define <4 x float> @three_registers(<48 x float> %x) {
  %some = shufflevector <48 x float> %x, <48 x float> poison, <4 x i32> <i32 0, i32 11, i32 22, i32 33>
  ret <4 x float> %some
}

; Through a cast, and poison stays poison.
; CHECK-LABEL: define <16 x i32> @cast(
; WIDE: [[REGISTER:%.+]] = bitcast <16 x float> %{{.+}} to <16 x i32>
; WIDE-NEXT: shufflevector <16 x i32> [[REGISTER]], <16 x i32> poison, <16 x i32> <i32 15, i32 poison, i32 15, i32 15,
; CHECK: ret
define <16 x i32> @cast(<32 x float> %x) {
  %slice = shufflevector <32 x float> %x, <32 x float> poison, <16 x i32> <i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 poison, i32 24>
  %bits = bitcast <16 x float> %slice to <16 x i32>
  %one = shufflevector <16 x i32> %bits, <16 x i32> poison, <16 x i32> <i32 6, i32 8, i32 6, i32 6, i32 6, i32 6, i32 6, i32 6, i32 6, i32 6, i32 6, i32 6, i32 6, i32 6, i32 6, i32 6>
  ret <16 x i32> %one
}
