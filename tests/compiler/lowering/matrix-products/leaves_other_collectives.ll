; Only products become exchanges. An exchange that the kernel has itself stays one, and so does the query for a lane's
; elements.
; RUN: kiln-opt --passes=matrix-products %s | FileCheck %s

declare i64 @__kiln_matrix_product(i32, i32, i32, float, float, float, float, float, float)

declare i64 @__kiln_exchange(i32, i32, i32, ptr, i64, i64, i64)
declare i32 @__kiln_matrix_lane(i32)

; CHECK-LABEL: @others(
; CHECK-NEXT: %sum = call i64 @__kiln_exchange(i32 7, i32 3, i32 32, ptr null, i64 0, i64 %value, i64 0)
; CHECK-NEXT: %lane = call i32 @__kiln_matrix_lane(i32 0)
; CHECK-NEXT: %wide = zext i32 %lane to i64
; CHECK-NEXT: %both = add i64 %sum, %wide
; CHECK-NEXT: ret i64 %both
define i64 @others(i64 %value) {
  %sum = call i64 @__kiln_exchange(i32 7, i32 3, i32 32, ptr null, i64 0, i64 %value, i64 0)
  %lane = call i32 @__kiln_matrix_lane(i32 0)
  %wide = zext i32 %lane to i64
  %both = add i64 %sum, %wide
  ret i64 %both
}
