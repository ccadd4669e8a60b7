; A bitcast of a vector to a number becomes shifts of its components, and one of a number to a vector the reverse, so
; that no value needs to have all bits of the vector.
; RUN: kiln-opt --passes=vector-bitcasts %s | FileCheck %s

; CHECK-LABEL: define i64 @to_a_number(
; CHECK-NOT: bitcast <2 x float>
; CHECK-DAG: extractelement <2 x float> %v, i64 0
; CHECK-DAG: extractelement <2 x float> %v, i64 1
; CHECK: [[HIGH:%.*]] = shl i64 {{.*}}, 32
; CHECK: [[BITS:%.*]] = or i64 {{.*}}, [[HIGH]]
; CHECK: ret i64 [[BITS]]
define i64 @to_a_number(<2 x float> %v) {
  %bits = bitcast <2 x float> %v to i64
  ret i64 %bits
}

; CHECK-LABEL: define <2 x float> @to_a_vector(
; CHECK-NOT: bitcast i64 %bits to <2 x float>
; CHECK: [[LOW:%.*]] = bitcast i32 {{.*}} to float
; CHECK: [[FIRST:%.*]] = insertelement <2 x float> {{.*}}, float [[LOW]], i64 0
; CHECK: [[SHIFTED:%.*]] = lshr i64 %bits, 32
; CHECK: [[BITS:%.*]] = trunc i64 [[SHIFTED]] to i32
; CHECK: [[HIGH:%.*]] = bitcast i32 [[BITS]] to float
; CHECK: [[V:%.*]] = insertelement <2 x float> [[FIRST]], float [[HIGH]], i64 1
; CHECK: ret <2 x float> [[V]]
define <2 x float> @to_a_vector(i64 %bits) {
  %v = bitcast i64 %bits to <2 x float>
  ret <2 x float> %v
}

; CHECK-LABEL: define double @to_a_double(
; CHECK: [[LAST:%.*]] = shl i64 {{.*}}, 48
; CHECK: [[BITS:%.*]] = or i64 {{.*}}, [[LAST]]
; CHECK: [[D:%.*]] = bitcast i64 [[BITS]] to double
; CHECK: ret double [[D]]
define double @to_a_double(<4 x i16> %v) {
  %d = bitcast <4 x i16> %v to double
  ret double %d
}
