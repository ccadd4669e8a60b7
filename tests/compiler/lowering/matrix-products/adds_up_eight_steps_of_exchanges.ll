; A thread has two elements of each matrix. For each k in ascending order it takes an element of a and two of b from
; other lanes, in exchanges of kind 1 (a shuffle) with the line of the product, and adds both products with an fma
; each. The result has both elements.
; RUN: kiln-opt --passes=matrix-products %s | FileCheck %s

declare i64 @__kiln_matrix_product(i32, i32, i32, float, float, float, float, float, float)

; CHECK-LABEL: @product(
; CHECK-NOT: call i64 @__kiln_matrix_product
; CHECK: %[[A0_BITS:.+]] = bitcast float %a0 to i32
; CHECK: call i64 @__kiln_exchange(i32 7, i32 1, i32 32, ptr null, i64 0,
; CHECK: %[[A0:.+]] = bitcast i32 %{{.+}} to float
; CHECK: bitcast float %b0 to i32
; CHECK: call i64 @__kiln_exchange(i32 7, i32 1, i32 32, ptr null, i64 0,
; CHECK: %[[B0:.+]] = bitcast i32 %{{.+}} to float
; CHECK: %[[FIRST0:.+]] = call float @llvm.fma.f32(float %[[A0]], float %[[B0]], float %c0)
; CHECK: bitcast float %b1 to i32
; CHECK: call i64 @__kiln_exchange(i32 7, i32 1, i32 32, ptr null, i64 0,
; CHECK: %[[BB0:.+]] = bitcast i32 %{{.+}} to float
; CHECK: %[[SECOND0:.+]] = call float @llvm.fma.f32(float %[[A0]], float %[[BB0]], float %c1)
; CHECK: %[[A1_BITS:.+]] = bitcast float %a1 to i32
; CHECK: call i64 @__kiln_exchange(i32 7, i32 1, i32 32, ptr null, i64 0,
; CHECK: %[[A1:.+]] = bitcast i32 %{{.+}} to float
; CHECK: bitcast float %b0 to i32
; CHECK: call i64 @__kiln_exchange(i32 7, i32 1, i32 32, ptr null, i64 0,
; CHECK: %[[B1:.+]] = bitcast i32 %{{.+}} to float
; CHECK: %[[FIRST1:.+]] = call float @llvm.fma.f32(float %[[A1]], float %[[B1]], float %[[FIRST0]])
; CHECK: bitcast float %b1 to i32
; CHECK: call i64 @__kiln_exchange(i32 7, i32 1, i32 32, ptr null, i64 0,
; CHECK: %[[BB1:.+]] = bitcast i32 %{{.+}} to float
; CHECK: %[[SECOND1:.+]] = call float @llvm.fma.f32(float %[[A1]], float %[[BB1]], float %[[SECOND0]])
; CHECK: %[[A2_BITS:.+]] = bitcast float %a0 to i32
; CHECK: call i64 @__kiln_exchange(i32 7, i32 1, i32 32, ptr null, i64 0,
; CHECK: %[[A2:.+]] = bitcast i32 %{{.+}} to float
; CHECK: bitcast float %b0 to i32
; CHECK: call i64 @__kiln_exchange(i32 7, i32 1, i32 32, ptr null, i64 0,
; CHECK: %[[B2:.+]] = bitcast i32 %{{.+}} to float
; CHECK: %[[FIRST2:.+]] = call float @llvm.fma.f32(float %[[A2]], float %[[B2]], float %[[FIRST1]])
; CHECK: bitcast float %b1 to i32
; CHECK: call i64 @__kiln_exchange(i32 7, i32 1, i32 32, ptr null, i64 0,
; CHECK: %[[BB2:.+]] = bitcast i32 %{{.+}} to float
; CHECK: %[[SECOND2:.+]] = call float @llvm.fma.f32(float %[[A2]], float %[[BB2]], float %[[SECOND1]])
; CHECK: %[[A3_BITS:.+]] = bitcast float %a1 to i32
; CHECK: call i64 @__kiln_exchange(i32 7, i32 1, i32 32, ptr null, i64 0,
; CHECK: %[[A3:.+]] = bitcast i32 %{{.+}} to float
; CHECK: bitcast float %b0 to i32
; CHECK: call i64 @__kiln_exchange(i32 7, i32 1, i32 32, ptr null, i64 0,
; CHECK: %[[B3:.+]] = bitcast i32 %{{.+}} to float
; CHECK: %[[FIRST3:.+]] = call float @llvm.fma.f32(float %[[A3]], float %[[B3]], float %[[FIRST2]])
; CHECK: bitcast float %b1 to i32
; CHECK: call i64 @__kiln_exchange(i32 7, i32 1, i32 32, ptr null, i64 0,
; CHECK: %[[BB3:.+]] = bitcast i32 %{{.+}} to float
; CHECK: %[[SECOND3:.+]] = call float @llvm.fma.f32(float %[[A3]], float %[[BB3]], float %[[SECOND2]])
; CHECK: %[[A4_BITS:.+]] = bitcast float %a0 to i32
; CHECK: call i64 @__kiln_exchange(i32 7, i32 1, i32 32, ptr null, i64 0,
; CHECK: %[[A4:.+]] = bitcast i32 %{{.+}} to float
; CHECK: bitcast float %b0 to i32
; CHECK: call i64 @__kiln_exchange(i32 7, i32 1, i32 32, ptr null, i64 0,
; CHECK: %[[B4:.+]] = bitcast i32 %{{.+}} to float
; CHECK: %[[FIRST4:.+]] = call float @llvm.fma.f32(float %[[A4]], float %[[B4]], float %[[FIRST3]])
; CHECK: bitcast float %b1 to i32
; CHECK: call i64 @__kiln_exchange(i32 7, i32 1, i32 32, ptr null, i64 0,
; CHECK: %[[BB4:.+]] = bitcast i32 %{{.+}} to float
; CHECK: %[[SECOND4:.+]] = call float @llvm.fma.f32(float %[[A4]], float %[[BB4]], float %[[SECOND3]])
; CHECK: %[[A5_BITS:.+]] = bitcast float %a1 to i32
; CHECK: call i64 @__kiln_exchange(i32 7, i32 1, i32 32, ptr null, i64 0,
; CHECK: %[[A5:.+]] = bitcast i32 %{{.+}} to float
; CHECK: bitcast float %b0 to i32
; CHECK: call i64 @__kiln_exchange(i32 7, i32 1, i32 32, ptr null, i64 0,
; CHECK: %[[B5:.+]] = bitcast i32 %{{.+}} to float
; CHECK: %[[FIRST5:.+]] = call float @llvm.fma.f32(float %[[A5]], float %[[B5]], float %[[FIRST4]])
; CHECK: bitcast float %b1 to i32
; CHECK: call i64 @__kiln_exchange(i32 7, i32 1, i32 32, ptr null, i64 0,
; CHECK: %[[BB5:.+]] = bitcast i32 %{{.+}} to float
; CHECK: %[[SECOND5:.+]] = call float @llvm.fma.f32(float %[[A5]], float %[[BB5]], float %[[SECOND4]])
; CHECK: %[[A6_BITS:.+]] = bitcast float %a0 to i32
; CHECK: call i64 @__kiln_exchange(i32 7, i32 1, i32 32, ptr null, i64 0,
; CHECK: %[[A6:.+]] = bitcast i32 %{{.+}} to float
; CHECK: bitcast float %b0 to i32
; CHECK: call i64 @__kiln_exchange(i32 7, i32 1, i32 32, ptr null, i64 0,
; CHECK: %[[B6:.+]] = bitcast i32 %{{.+}} to float
; CHECK: %[[FIRST6:.+]] = call float @llvm.fma.f32(float %[[A6]], float %[[B6]], float %[[FIRST5]])
; CHECK: bitcast float %b1 to i32
; CHECK: call i64 @__kiln_exchange(i32 7, i32 1, i32 32, ptr null, i64 0,
; CHECK: %[[BB6:.+]] = bitcast i32 %{{.+}} to float
; CHECK: %[[SECOND6:.+]] = call float @llvm.fma.f32(float %[[A6]], float %[[BB6]], float %[[SECOND5]])
; CHECK: %[[A7_BITS:.+]] = bitcast float %a1 to i32
; CHECK: call i64 @__kiln_exchange(i32 7, i32 1, i32 32, ptr null, i64 0,
; CHECK: %[[A7:.+]] = bitcast i32 %{{.+}} to float
; CHECK: bitcast float %b0 to i32
; CHECK: call i64 @__kiln_exchange(i32 7, i32 1, i32 32, ptr null, i64 0,
; CHECK: %[[B7:.+]] = bitcast i32 %{{.+}} to float
; CHECK: %[[FIRST7:.+]] = call float @llvm.fma.f32(float %[[A7]], float %[[B7]], float %[[FIRST6]])
; CHECK: bitcast float %b1 to i32
; CHECK: call i64 @__kiln_exchange(i32 7, i32 1, i32 32, ptr null, i64 0,
; CHECK: %[[BB7:.+]] = bitcast i32 %{{.+}} to float
; CHECK: %[[SECOND7:.+]] = call float @llvm.fma.f32(float %[[A7]], float %[[BB7]], float %[[SECOND6]])
; CHECK-NOT: @__kiln_exchange
; CHECK-DAG: %[[FIRST_BITS:.+]] = bitcast float %[[FIRST7]] to i32
; CHECK-DAG: %[[LOWER:.+]] = zext i32 %[[FIRST_BITS]] to i64
; CHECK-DAG: %[[SECOND_BITS:.+]] = bitcast float %[[SECOND7]] to i32
; CHECK-DAG: %[[WIDE:.+]] = zext i32 %[[SECOND_BITS]] to i64
; CHECK-DAG: %[[UPPER:.+]] = shl i64 %[[WIDE]], 32
; CHECK: %[[BOTH:.+]] = or i64 %[[LOWER]], %[[UPPER]]
; CHECK: ret i64 %[[BOTH]]
define i64 @product(float %a0, float %a1, float %b0, float %b1, float %c0, float %c1) {
  %product = call i64 @__kiln_matrix_product(i32 7, i32 0, i32 0, float %a0, float %a1, float %b0, float %b1, float %c0, float %c1)
  ret i64 %product
}
