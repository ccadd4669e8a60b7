; A base for each lane, several indices, or elements that no scale reaches: the addresses are the indices, and there is
; no base.
; RUN: kiln-opt --passes=gather-instructions --cpu=x86-64-v3 %s | FileCheck %s

declare <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr>, i32, <8 x i1>, <8 x float>)

; CHECK-LABEL: define <8 x float> @vector_of_bases(
; CHECK: %[[AT:.*]] = ptrtoint <8 x ptr> %at to <8 x i64>
; CHECK-COUNT-2: call <4 x float> @llvm.x86.avx2.gather.q.ps.256(<4 x float> {{.*}}, ptr null, <4 x i64> {{.*}}, <4 x float> {{.*}}, i8 1)
define <8 x float> @vector_of_bases(<8 x ptr> %x, i64 %i, <8 x i1> %mask) {
  %at = getelementptr float, <8 x ptr> %x, i64 %i
  %v = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> %at, i32 4, <8 x i1> %mask, <8 x float> zeroinitializer)
  ret <8 x float> %v
}

; CHECK-LABEL: define <8 x float> @several_indices(
; CHECK: ptr null
define <8 x float> @several_indices(ptr %x, <8 x i64> %i, <8 x i64> %j, <8 x i1> %mask) {
  %at = getelementptr [8 x float], ptr %x, <8 x i64> %i, <8 x i64> %j
  %v = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> %at, i32 4, <8 x i1> %mask, <8 x float> zeroinitializer)
  ret <8 x float> %v
}

; CHECK-LABEL: define <8 x float> @three_words(
; CHECK: ptr null
define <8 x float> @three_words(ptr %x, <8 x i32> %i, <8 x i1> %mask) {
  %wide = sext <8 x i32> %i to <8 x i64>
  %at = getelementptr [3 x float], ptr %x, <8 x i64> %wide
  %v = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> %at, i32 4, <8 x i1> %mask, <8 x float> zeroinitializer)
  ret <8 x float> %v
}
