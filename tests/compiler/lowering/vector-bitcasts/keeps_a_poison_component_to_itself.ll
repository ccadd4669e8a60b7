; The fourth of three components may be poison. It is frozen before it is joined to the others, which stay what they
; are.
; RUN: kiln-opt --passes=vector-bitcasts %s | FileCheck %s

; CHECK-LABEL: define i32 @f(
; CHECK: [[COMPONENT:%.*]] = extractelement <4 x i8> %v, i64 3
; CHECK: [[FROZEN:%.*]] = freeze i8 [[COMPONENT]]
; CHECK: [[WIDE:%.*]] = zext i8 [[FROZEN]] to i32
; CHECK: shl i32 [[WIDE]], 24
define i32 @f(<3 x i8> %three) {
  %v = shufflevector <3 x i8> %three, <3 x i8> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 poison>
  %bits = bitcast <4 x i8> %v to i32
  ret i32 %bits
}
