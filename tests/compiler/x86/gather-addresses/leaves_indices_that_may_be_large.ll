; Above 2^31 the extensions differ: the limit is one element too high, it is not known, or it is another number's.
; RUN: kiln-opt --passes=gather-addresses %s | FileCheck %s

declare <4 x float> @llvm.masked.gather.v4f32.v4p0(<4 x ptr>, i32, <4 x i1>, <4 x float>)

; CHECK-LABEL: define <4 x float> @above(
; CHECK-NOT: sext
; CHECK: ret
define <4 x float> @above(ptr %x, <4 x i32> %i) {
  %wide = zext <4 x i32> %i to <4 x i64>
  %bytes = shl <4 x i64> %wide, splat (i64 2)
  %mask = icmp ult <4 x i64> %bytes, splat (i64 8589934593)
  %at = getelementptr float, ptr %x, <4 x i64> %wide
  %v = call <4 x float> @llvm.masked.gather.v4f32.v4p0(<4 x ptr> %at, i32 4, <4 x i1> %mask, <4 x float> zeroinitializer)
  ret <4 x float> %v
}

; CHECK-LABEL: define <4 x float> @unknown(
; CHECK-NOT: sext
; CHECK: ret
define <4 x float> @unknown(ptr %x, <4 x i32> %i, <4 x i32> %j, <4 x i32> %n) {
  %below = icmp ult <4 x i32> %i, %n
  %other = icmp ult <4 x i32> %j, splat (i32 1024)
  %mask = and <4 x i1> %below, %other
  %wide = zext <4 x i32> %i to <4 x i64>
  %at = getelementptr float, ptr %x, <4 x i64> %wide
  %v = call <4 x float> @llvm.masked.gather.v4f32.v4p0(<4 x ptr> %at, i32 4, <4 x i1> %mask, <4 x float> zeroinitializer)
  ret <4 x float> %v
}

; Addresses of two vectors of indices stay as they are.
; CHECK-LABEL: define <4 x float> @rows(
; CHECK: getelementptr [8 x [8 x float]], ptr %x, i64 0, <4 x i64> %i, <4 x i64> %j
define <4 x float> @rows(ptr %x, <4 x i64> %i, <4 x i64> %j, <4 x i1> %mask) {
  %at = getelementptr [8 x [8 x float]], ptr %x, i64 0, <4 x i64> %i, <4 x i64> %j
  %v = call <4 x float> @llvm.masked.gather.v4f32.v4p0(<4 x ptr> %at, i32 4, <4 x i1> %mask, <4 x float> zeroinitializer)
  ret <4 x float> %v
}
