; The processor extends indices of 32 bits by their sign. An unsigned index is one of those where the mask says that it
; is small, by itself or as a product of 64 bits.
; RUN: kiln-opt --passes=gather-addresses %s | FileCheck %s

declare <4 x float> @llvm.masked.gather.v4f32.v4p0(<4 x ptr>, i32, <4 x i1>, <4 x float>)

; CHECK-LABEL: define <4 x float> @index(
; CHECK: %[[I:.*]] = sext <4 x i32> %i to <4 x i64>
; CHECK-NEXT: getelementptr i32, ptr %x, <4 x i64> %[[I]]
define <4 x float> @index(ptr %x, <4 x i32> %i, <4 x i1> %active) {
  %inside = icmp ult <4 x i32> %i, splat (i32 1024)
  %mask = and <4 x i1> %active, %inside
  %wide = zext <4 x i32> %i to <4 x i64>
  %at = getelementptr float, ptr %x, <4 x i64> %wide
  %v = call <4 x float> @llvm.masked.gather.v4f32.v4p0(<4 x ptr> %at, i32 4, <4 x i1> %mask, <4 x float> zeroinitializer)
  ret <4 x float> %v
}

; CHECK-LABEL: define <4 x float> @bytes(
; CHECK: sext <4 x i32> %i to <4 x i64>
define <4 x float> @bytes(ptr %x, <4 x i32> %i) {
  %wide = zext <4 x i32> %i to <4 x i64>
  %bytes = shl <4 x i64> %wide, splat (i64 2)
  %mask = icmp ult <4 x i64> %bytes, splat (i64 8589934592)
  %at = getelementptr float, ptr %x, <4 x i64> %wide
  %v = call <4 x float> @llvm.masked.gather.v4f32.v4p0(<4 x ptr> %at, i32 4, <4 x i1> %mask, <4 x float> zeroinitializer)
  ret <4 x float> %v
}
