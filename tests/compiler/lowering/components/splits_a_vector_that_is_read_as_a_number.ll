; The border of what splits by components: a vector of which all bits are read as one number, or which comes from one,
; is spelled out as shifts of components first, so that none is put together again.
; RUN: kiln-opt --passes=components %s | FileCheck %s

; CHECK-LABEL: define i32 @as_a_number(
; CHECK-NOT: <4 x i8>
; CHECK: load i8, ptr %p
; CHECK: shl i32 {{.*}}, 24
; CHECK-NOT: <4 x i8>
; CHECK: ret i32
define i32 @as_a_number(ptr %p) {
  %v = load <4 x i8>, ptr %p
  %bits = bitcast <4 x i8> %v to i32
  ret i32 %bits
}

; CHECK-LABEL: define void @from_a_number(
; CHECK-NOT: <4 x i8>
; CHECK: lshr i32 %bits, 24
; CHECK: store i8
; CHECK-NOT: <4 x i8>
; CHECK: ret void
define void @from_a_number(ptr %p, i32 %bits) {
  %v = bitcast i32 %bits to <4 x i8>
  store <4 x i8> %v, ptr %p
  ret void
}
