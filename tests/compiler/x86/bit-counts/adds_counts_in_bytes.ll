; A sum of counts is one of bytes, which are added up once, in pairs.
; RUN: kiln-opt --passes=bit-counts --cpu=x86-64-v3 %s | FileCheck %s --check-prefixes=CHECK,AVX2
; RUN: kiln-opt --passes=bit-counts --cpu=x86-64-v4 %s | FileCheck %s --check-prefixes=CHECK,AVX512

declare <16 x i32> @llvm.ctpop.v16i32(<16 x i32>)
declare <8 x i64> @llvm.ctpop.v8i64(<8 x i64>)

; CHECK-LABEL: define <16 x i32> @words(
; CHECK: %[[A:.+]] = bitcast <16 x i32> %a to <64 x i8>
; CHECK: %[[CA:.+]] = call <64 x i8> @llvm.ctpop.v64i8(<64 x i8> %[[A]])
; CHECK: %[[B:.+]] = bitcast <16 x i32> %b to <64 x i8>
; CHECK: %[[CB:.+]] = call <64 x i8> @llvm.ctpop.v64i8(<64 x i8> %[[B]])
; CHECK: add <64 x i8> %[[CA]], %[[CB]]
; AVX2-COUNT-2: call <16 x i16> @llvm.x86.avx2.pmadd.ub.sw(<32 x i8> %{{.+}}, <32 x i8> <i8 1, i8 1,
; AVX512: call <32 x i16> @llvm.x86.avx512.pmaddubs.w.512(<64 x i8> %{{.+}}, <64 x i8> <i8 1, i8 1,
; AVX512: call <16 x i32> @llvm.x86.avx512.pmaddw.d.512(<32 x i16> %{{.+}}, <32 x i16> <i16 1, i16 1,
; CHECK-NOT: ctpop
; CHECK: ret <16 x i32>
define <16 x i32> @words(<16 x i32> %sum, <16 x i32> %a, <16 x i32> %b) {
  %ca = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %a)
  %one = add <16 x i32> %sum, %ca
  %cb = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %b)
  %two = add <16 x i32> %one, %cb
  ret <16 x i32> %two
}

; CHECK-LABEL: define <8 x i64> @long_words(
; AVX2-COUNT-2: call <4 x i64> @llvm.x86.avx2.psad.bw(<32 x i8> %{{.+}}, <32 x i8> zeroinitializer)
; AVX512: call <8 x i64> @llvm.x86.avx512.psad.bw.512(<64 x i8> %{{.+}}, <64 x i8> zeroinitializer)
define <8 x i64> @long_words(<8 x i64> %a, <8 x i64> %b) {
  %c = call <8 x i64> @llvm.ctpop.v8i64(<8 x i64> %a)
  %d = call <8 x i64> @llvm.ctpop.v8i64(<8 x i64> %b)
  %s = add <8 x i64> %c, %d
  ret <8 x i64> %s
}
