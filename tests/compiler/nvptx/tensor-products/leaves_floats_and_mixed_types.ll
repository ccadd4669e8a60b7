; The hardware has no products of floats that round as Metal's do, and none of halves with bfloats.
; RUN: kiln-opt --passes=convergence-points-in-loops,thread-index,simdgroup-masks,tensor-products --matrices=tensor --remarks --function=floats %s 2>&1 | FileCheck %s --check-prefix=FLOATS
; RUN: kiln-opt --passes=convergence-points-in-loops,thread-index,simdgroup-masks,tensor-products --matrices=tensor --remarks --function=mixed %s 2>&1 | FileCheck %s --check-prefix=MIXED

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

declare i64 @__kiln_matrix_product(i32, i32, i32, float, float, float, float, float, float) convergent

; FLOATS-LABEL: define i64 @floats(
; FLOATS-NOT: asm
; FLOATS: call i64 @__kiln_wait_product(
; FLOATS: ret i64
; FLOATS: remark: {{.*}}tensor-products: no tensor cores: they have no products of matrices of floats
define i64 @floats(float %a0, float %a1, float %b0, float %b1, float %c0, float %c1) {
  %r = call i64 @__kiln_matrix_product(i32 7, i32 0, i32 0, float %a0, float %a1, float %b0, float %b1, float %c0, float %c1) convergent
  ret i64 %r
}

; MIXED-LABEL: define i64 @mixed(
; MIXED-NOT: asm
; MIXED: call i64 @__kiln_wait_product(
; MIXED: ret i64
; MIXED: remark: {{.*}}tensor-products: no tensor cores: the matrices have elements of two types
define i64 @mixed(float %a0, float %a1, float %b0, float %b1, float %c0, float %c1) {
  %r = call i64 @__kiln_matrix_product(i32 7, i32 1, i32 2, float %a0, float %a1, float %b0, float %b1, float %c0, float %c1) convergent
  ret i64 %r
}
