; Two halves of each matrix are a word. The right matrix is transposed by movmatrix; zeros stand for a second left matrix.
; Lanes that hold elements by the hardware's own map need no shuffles.
; RUN: kiln-opt --passes=convergence-points-in-loops,thread-index,simdgroup-masks,tensor-products --matrices=tensor %s | FileCheck %s
; RUN: kiln-opt --passes=convergence-points-in-loops,thread-index,simdgroup-masks,tensor-products %s | FileCheck %s --check-prefix=APPLE

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

declare i64 @__kiln_matrix_product(i32, i32, i32, float, float, float, float, float, float) convergent

; CHECK-LABEL: define i64 @product(
; CHECK-NOT: shfl
; CHECK: %[[B:.+]] = call i32 asm "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;"
; CHECK-NOT: shfl
; CHECK: asm "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32
; CHECK-SAME: i32 0, i32 %[[B]], float %c0, float %c1, float 0.000000e+00, float 0.000000e+00)
; CHECK-NOT: @__kiln_wait_product(
; CHECK: ret i64

; By Apple's map shuffles convert the layout before the product and after it.
; APPLE-LABEL: define i64 @product(
; APPLE: @llvm.nvvm.shfl.sync.idx.i32(i32 -1,
; APPLE: asm "mma.sync
; APPLE: @llvm.nvvm.shfl.sync.idx.i32(i32 -1,
; APPLE: ret i64
define i64 @product(half %a0, half %a1, half %b0, half %b1, float %c0, float %c1) {
  %x0 = fpext half %a0 to float
  %x1 = fpext half %a1 to float
  %y0 = fpext half %b0 to float
  %y1 = fpext half %b1 to float
  %r = call i64 @__kiln_matrix_product(i32 7, i32 1, i32 1, float %x0, float %x1, float %y0, float %y1, float %c0, float %c1) convergent
  ret i64 %r
}
