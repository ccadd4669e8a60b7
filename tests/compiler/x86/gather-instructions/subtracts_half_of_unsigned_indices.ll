; The processor extends indices by their sign. An unsigned one less 2^31 has a sign, and the base is higher by 2^31
; elements of whatever size.
; RUN: kiln-opt --passes=gather-instructions --cpu=x86-64-v3 %s | FileCheck %s

declare <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr>, i32, <8 x i1>, <8 x float>)

; CHECK-LABEL: define <8 x float> @words(
; CHECK: %[[I:.*]] = xor <8 x i32> %i, <i32 -2147483648, i32 -2147483648
; CHECK: %[[BASE:.*]] = getelementptr i8, ptr %x, i64 8589934592
; CHECK: %[[ACTIVE:.*]] = select <8 x i1> %mask, <8 x i32> %[[I]], <8 x i32> zeroinitializer
; CHECK: %[[PART:.*]] = shufflevector <8 x i32> %[[ACTIVE]],
; CHECK: call <8 x float> @llvm.x86.avx2.gather.d.ps.256(<8 x float> {{.*}}, ptr %[[BASE]], <8 x i32> %[[PART]], <8 x float> {{.*}}, i8 4)
define <8 x float> @words(ptr %x, <8 x i32> %i, <8 x i1> %mask) {
  %wide = zext <8 x i32> %i to <8 x i64>
  %at = getelementptr inbounds float, ptr %x, <8 x i64> %wide
  %v = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> %at, i32 4, <8 x i1> %mask, <8 x float> zeroinitializer)
  ret <8 x float> %v
}

; A class of 8 bytes.
; CHECK-LABEL: define <8 x float> @classes(
; CHECK: getelementptr i8, ptr %x, i64 17179869184
; CHECK: call <8 x float> @llvm.x86.avx2.gather.d.ps.256({{.*}}, i8 8)
define <8 x float> @classes(ptr %x, <8 x i32> %i, <8 x i1> %mask) {
  %wide = zext <8 x i32> %i to <8 x i64>
  %at = getelementptr { float, float }, ptr %x, <8 x i64> %wide
  %v = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> %at, i32 4, <8 x i1> %mask, <8 x float> zeroinitializer)
  ret <8 x float> %v
}
