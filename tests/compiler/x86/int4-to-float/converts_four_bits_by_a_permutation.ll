; float(word & 15) is one permutation of a table with the numbers 0 to 15: it selects by the lowest four bits, so the
; `and` is not needed. Both conversions give the same, since the number is not negative.
; RUN: kiln-opt --passes=int4-to-float --cpu=x86-64-v4 %s | FileCheck %s

; CHECK-LABEL: @unsigned(
; CHECK: %words = lshr <16 x i32> %packed, <i32 4,
; CHECK: %[[FLOATS:.*]] = call <16 x float> @llvm.x86.avx512.permvar.sf.512(<16 x float> <float 0.000000e+00, float 1.000000e+00, float 2.000000e+00, float 3.000000e+00, float 4.000000e+00, float 5.000000e+00, float 6.000000e+00, float 7.000000e+00, float 8.000000e+00, float 9.000000e+00, float 1.000000e+01, float 1.100000e+01, float 1.200000e+01, float 1.300000e+01, float 1.400000e+01, float 1.500000e+01>, <16 x i32> %[[WORDS:.*]])
; CHECK-NOT: uitofp
; CHECK: ret <16 x float> %[[FLOATS]]
define <16 x float> @unsigned(<16 x i32> %packed) {
  %words = lshr <16 x i32> %packed, splat (i32 4)
  %bits = and <16 x i32> %words, splat (i32 15)
  %floats = uitofp <16 x i32> %bits to <16 x float>
  ret <16 x float> %floats
}

; CHECK-LABEL: @signed(
; CHECK: call <16 x float> @llvm.x86.avx512.permvar.sf.512(
; CHECK-NOT: sitofp
; CHECK: ret
define <16 x float> @signed(<16 x i32> %words) {
  %bits = and <16 x i32> %words, splat (i32 15)
  %floats = sitofp <16 x i32> %bits to <16 x float>
  ret <16 x float> %floats
}

; 32 lanes are two registers.
; CHECK-LABEL: @wide(
; CHECK-COUNT-2: call <16 x float> @llvm.x86.avx512.permvar.sf.512(
; CHECK: %[[BOTH:.*]] = shufflevector <16 x float> {{.*}}, <16 x float> {{.*}}, <32 x i32>
; CHECK: ret <32 x float> %[[BOTH]]
define <32 x float> @wide(<32 x i32> %words) {
  %bits = and <32 x i32> %words, splat (i32 15)
  %floats = uitofp <32 x i32> %bits to <32 x float>
  ret <32 x float> %floats
}
