; The types of a and b, here half and bfloat, say what they were before they became floats. They make no difference to
; exchanges, and a product whose result is another one's operand is expanded like it.
; RUN: kiln-opt --passes=matrix-products %s | FileCheck %s

declare i64 @__kiln_matrix_product(i32, i32, i32, float, float, float, float, float, float)

; CHECK-LABEL: @halves(
; CHECK-NOT: call i64 @__kiln_matrix_product
; CHECK-COUNT-24: call i64 @__kiln_exchange(i32 7, i32 1, i32 32,
; CHECK-NOT: @__kiln_exchange
; CHECK: ret i64
define i64 @halves(float %a0, float %a1, float %b0, float %b1, float %c0, float %c1) {
  %product = call i64 @__kiln_matrix_product(i32 7, i32 1, i32 2, float %a0, float %a1, float %b0, float %b1, float %c0, float %c1)
  ret i64 %product
}

; CHECK-LABEL: @chain(
; CHECK-NOT: call i64 @__kiln_matrix_product
; CHECK-COUNT-24: call i64 @__kiln_exchange(i32 7,
; CHECK: %[[FIRST:.+]] = or i64
; CHECK: %lower = trunc i64 %[[FIRST]] to i32
; CHECK-COUNT-24: call i64 @__kiln_exchange(i32 8,
; CHECK-NOT: @__kiln_exchange
; CHECK: ret i64
define i64 @chain(float %a0, float %a1, float %b0, float %b1) {
  %first = call i64 @__kiln_matrix_product(i32 7, i32 0, i32 0, float %a0, float %a1, float %b0, float %b1, float 0.0, float 0.0)
  %lower = trunc i64 %first to i32
  %c = bitcast i32 %lower to float
  %second = call i64 @__kiln_matrix_product(i32 8, i32 0, i32 0, float %a0, float %a1, float %b0, float %b1, float %c, float %c)
  ret i64 %second
}
