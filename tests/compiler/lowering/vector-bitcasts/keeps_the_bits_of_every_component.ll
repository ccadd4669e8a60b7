; The results for constants are those of a bitcast: component 0 has the lowest bits, also from a vector to one of
; another length, and where components are not integers.
; RUN: kiln-opt --passes=vector-bitcasts,instsimplify %s | FileCheck %s

; CHECK-LABEL: define i32 @bytes(
; CHECK: ret i32 67305985
define i32 @bytes() {
  %bits = bitcast <4 x i8> <i8 1, i8 2, i8 3, i8 4> to i32
  ret i32 %bits
}

; The highest bit of a component does not spread.
; CHECK-LABEL: define i32 @negative(
; CHECK: ret i32 65535
define i32 @negative() {
  %bits = bitcast <2 x i16> <i16 -1, i16 0> to i32
  ret i32 %bits
}

; CHECK-LABEL: define <4 x i16> @shorter_components(
; CHECK: ret <4 x i16> <i16 0, i16 16256, i16 2, i16 1>
define <4 x i16> @shorter_components() {
  %v = bitcast <2 x i32> <i32 1065353216, i32 65538> to <4 x i16>
  ret <4 x i16> %v
}

; CHECK-LABEL: define <1 x i32> @longer_components(
; CHECK: ret <1 x i32> <i32 1073741824>
define <1 x i32> @longer_components() {
  %v = bitcast <2 x half> <half 0.0, half 2.0> to <1 x i32>
  ret <1 x i32> %v
}

; CHECK-LABEL: define i8 @bools(
; CHECK: ret i8 5
define i8 @bools() {
  %bits = bitcast <8 x i1> <i1 1, i1 0, i1 1, i1 0, i1 0, i1 0, i1 0, i1 0> to i8
  ret i8 %bits
}
