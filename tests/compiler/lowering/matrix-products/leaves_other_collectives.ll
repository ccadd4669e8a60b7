; Only products become exchanges. An exchange that the kernel has itself stays one, and a product that already is a
; convergence point is the widener's.
; RUN: kiln-opt --passes=matrix-products %s | FileCheck %s

declare i64 @__kiln_matrix_product(i32, i32, i32, float, float, float, float, float, float)

declare i64 @__kiln_exchange(i32, i32, i32, ptr, i64, i64, i64)
declare i64 @__kiln_wait_product(i32, i32, i32, float, float, float, float, float, float)

; CHECK-LABEL: @others(
; CHECK-NEXT: %sum = call i64 @__kiln_exchange(i32 7, i32 3, i32 32, ptr null, i64 0, i64 %value, i64 0)
; CHECK-NEXT: %product = call i64 @__kiln_wait_product(
; CHECK-NEXT: %both = add i64 %sum, %product
; CHECK-NEXT: ret i64 %both
define i64 @others(i64 %value, float %a) {
  %sum = call i64 @__kiln_exchange(i32 7, i32 3, i32 32, ptr null, i64 0, i64 %value, i64 0)
  %product = call i64 @__kiln_wait_product(i32 0, i32 0, i32 0, float %a, float %a, float %a, float %a, float %a, float %a)
  %both = add i64 %sum, %product
  ret i64 %both
}
