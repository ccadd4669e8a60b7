; AVX2 has no instruction for bytes and halves, or for fewer elements than a register's.
; RUN: kiln-opt --passes=gather-instructions --cpu=x86-64-v3 %s | FileCheck %s

declare <8 x i8> @llvm.masked.gather.v8i8.v8p0(<8 x ptr>, i32, <8 x i1>, <8 x i8>)
declare <8 x half> @llvm.masked.gather.v8f16.v8p0(<8 x ptr>, i32, <8 x i1>, <8 x half>)
declare <4 x float> @llvm.masked.gather.v4f32.v4p0(<4 x ptr>, i32, <4 x i1>, <4 x float>)

; CHECK-LABEL: define <8 x i8> @bytes(
; CHECK-NEXT: %v = call <8 x i8> @llvm.masked.gather
define <8 x i8> @bytes(<8 x ptr> %at, <8 x i1> %mask) {
  %v = call <8 x i8> @llvm.masked.gather.v8i8.v8p0(<8 x ptr> %at, i32 1, <8 x i1> %mask, <8 x i8> zeroinitializer)
  ret <8 x i8> %v
}

; CHECK-LABEL: define <8 x half> @halves(
; CHECK-NEXT: %v = call <8 x half> @llvm.masked.gather
define <8 x half> @halves(<8 x ptr> %at, <8 x i1> %mask) {
  %v = call <8 x half> @llvm.masked.gather.v8f16.v8p0(<8 x ptr> %at, i32 2, <8 x i1> %mask, <8 x half> zeroinitializer)
  ret <8 x half> %v
}

; Nothing is emitted before it gives up.
; CHECK-LABEL: define <4 x float> @few(
; CHECK-NEXT: %v = call <4 x float> @llvm.masked.gather
define <4 x float> @few(<4 x ptr> %at, <4 x i1> %mask) {
  %v = call <4 x float> @llvm.masked.gather.v4f32.v4p0(<4 x ptr> %at, i32 4, <4 x i1> %mask, <4 x float> zeroinitializer)
  ret <4 x float> %v
}
