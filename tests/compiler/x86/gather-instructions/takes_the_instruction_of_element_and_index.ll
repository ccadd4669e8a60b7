; One instruction fills a register, with eight elements of 4 bytes or four of 8 bytes. Indices of 64 bits fill a register
; four at a time. An index of 32 bits, or one that is extended from fewer, stays narrow.
; RUN: kiln-opt --passes=gather-instructions --cpu=x86-64-v3 %s | FileCheck %s

declare <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr>, i32, <8 x i1>, <8 x float>)
declare <8 x i32> @llvm.masked.gather.v8i32.v8p0(<8 x ptr>, i32, <8 x i1>, <8 x i32>)
declare <8 x i64> @llvm.masked.gather.v8i64.v8p0(<8 x ptr>, i32, <8 x i1>, <8 x i64>)
declare <8 x ptr> @llvm.masked.gather.v8p0.v8p0(<8 x ptr>, i32, <8 x i1>, <8 x ptr>)

; Inactive lanes have index 0: a register without a value might be the result's, too, which is an illegal instruction.
; CHECK-LABEL: define <8 x float> @words(
; CHECK: %[[ACTIVE:.*]] = select <8 x i1> %mask, <8 x i32> %i, <8 x i32> zeroinitializer
; CHECK: %[[MASK:.*]] = sext <8 x i1> %mask to <8 x i32>
; CHECK: %[[SIGNS:.*]] = bitcast <8 x i32> %[[MASK]] to <8 x float>
; CHECK: %[[OTHERWISE:.*]] = shufflevector <8 x float> %otherwise,
; CHECK: %[[I:.*]] = shufflevector <8 x i32> %[[ACTIVE]],
; CHECK: %[[S:.*]] = shufflevector <8 x float> %[[SIGNS]],
; CHECK: call <8 x float> @llvm.x86.avx2.gather.d.ps.256(<8 x float> %[[OTHERWISE]], ptr %x, <8 x i32> %[[I]], <8 x float> %[[S]], i8 4)
; CHECK-NOT: masked.gather
define <8 x float> @words(ptr %x, <8 x i32> %i, <8 x i1> %mask, <8 x float> %otherwise) {
  %wide = sext <8 x i32> %i to <8 x i64>
  %at = getelementptr float, ptr %x, <8 x i64> %wide
  %v = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> %at, i32 4, <8 x i1> %mask, <8 x float> %otherwise)
  ret <8 x float> %v
}

; A mask that is made of signs is not made again.
; CHECK-LABEL: define <8 x i32> @wide_index(
; CHECK-NOT: sext
; CHECK: %[[I:.*]] = shufflevector <8 x i64> %{{.*}}, <8 x i64> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
; CHECK: %[[M:.*]] = shufflevector <8 x i32> %words, <8 x i32> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
; CHECK: call <4 x i32> @llvm.x86.avx2.gather.q.d.256(<4 x i32> {{.*}}, ptr %x, <4 x i64> %[[I]], <4 x i32> %[[M]], i8 4)
; CHECK: call <4 x i32> @llvm.x86.avx2.gather.q.d.256(
; CHECK-NOT: call
define <8 x i32> @wide_index(ptr %x, <8 x i64> %i, <8 x i32> %words) {
  %mask = icmp slt <8 x i32> %words, zeroinitializer
  %at = getelementptr i32, ptr %x, <8 x i64> %i
  %v = call <8 x i32> @llvm.masked.gather.v8i32.v8p0(<8 x ptr> %at, i32 4, <8 x i1> %mask, <8 x i32> zeroinitializer)
  ret <8 x i32> %v
}

; The signs of words are none of numbers of 64 bits.
; CHECK-LABEL: define <8 x i64> @numbers(
; CHECK: zext <8 x i16> %i to <8 x i32>
; CHECK-NOT: xor
; CHECK: sext <8 x i1> %mask to <8 x i64>
; CHECK-COUNT-2: call <4 x i64> @llvm.x86.avx2.gather.d.q.256(<4 x i64> {{.*}}, ptr %x, <4 x i32> {{.*}}, <4 x i64> {{.*}}, i8 8)
; CHECK-NOT: call
define <8 x i64> @numbers(ptr %x, <8 x i16> %i, <8 x i32> %words) {
  %mask = icmp slt <8 x i32> %words, zeroinitializer
  %wide = zext <8 x i16> %i to <8 x i64>
  %at = getelementptr i64, ptr %x, <8 x i64> %wide
  %v = call <8 x i64> @llvm.masked.gather.v8i64.v8p0(<8 x ptr> %at, i32 8, <8 x i1> %mask, <8 x i64> zeroinitializer)
  ret <8 x i64> %v
}

; CHECK-LABEL: define <8 x ptr> @pointers(
; CHECK-COUNT-2: call <4 x i64> @llvm.x86.avx2.gather.q.q.256(
; CHECK: inttoptr <8 x i64> %{{.*}} to <8 x ptr>
define <8 x ptr> @pointers(ptr %x, <8 x i64> %i, <8 x i1> %mask) {
  %at = getelementptr ptr, ptr %x, <8 x i64> %i
  %v = call <8 x ptr> @llvm.masked.gather.v8p0.v8p0(<8 x ptr> %at, i32 8, <8 x i1> %mask, <8 x ptr> zeroinitializer)
  ret <8 x ptr> %v
}
