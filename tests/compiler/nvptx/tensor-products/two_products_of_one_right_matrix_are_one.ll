; Both left matrices fill the 16 rows of one instruction. A product whose sums are those of the first cannot be computed
; with it; nor one with another right matrix.
; RUN: kiln-opt --passes=convergence-points-in-loops,thread-index,simdgroup-masks,tensor-products --matrices=tensor --function=one %s | FileCheck %s --check-prefix=ONE
; RUN: kiln-opt --passes=convergence-points-in-loops,thread-index,simdgroup-masks,tensor-products --matrices=tensor --function=chain %s | FileCheck %s --check-prefix=CHAIN
; RUN: kiln-opt --passes=convergence-points-in-loops,thread-index,simdgroup-masks,tensor-products --matrices=tensor --function=left_early %s | FileCheck %s --check-prefix=LEFT

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

declare i64 @__kiln_matrix_product(i32, i32, i32, float, float, float, float, float, float) convergent
declare i32 @__kiln_value(i32)

; ONE-LABEL: define void @one(
; ONE-COUNT-1: asm "mma.sync
; ONE-NOT: asm "mma.sync
; ONE: ret void
define void @one(ptr %out, float %a0, float %a1, float %d0, float %d1, float %b0, float %b1, float %c0, float %c1) {
  %r = call i64 @__kiln_matrix_product(i32 7, i32 2, i32 2, float %a0, float %a1, float %b0, float %b1, float %c0, float %c1) convergent
  %s = call i64 @__kiln_matrix_product(i32 8, i32 2, i32 2, float %d0, float %d1, float %b0, float %b1, float %c1, float %c0) convergent
  store i64 %r, ptr %out
  %next = getelementptr i64, ptr %out, i64 1
  store i64 %s, ptr %next
  ret void
}

; CHAIN-LABEL: define void @chain(
; CHAIN-COUNT-2: asm "mma.sync
; CHAIN-NOT: asm "mma.sync
; CHAIN: ret void
define void @chain(ptr %out, float %a0, float %a1, float %b0, float %b1, float %c0, float %c1) {
  %r = call i64 @__kiln_matrix_product(i32 7, i32 2, i32 2, float %a0, float %a1, float %b0, float %b1, float %c0, float %c1) convergent
  %low = trunc i64 %r to i32
  %sum = bitcast i32 %low to float
  %s = call i64 @__kiln_matrix_product(i32 8, i32 2, i32 2, float %a0, float %a1, float %b0, float %b1, float %sum, float %c1) convergent
  store i64 %s, ptr %out
  ret void
}

; Not all threads of the simdgroup are known to be there.
; LEFT-LABEL: define void @left_early(
; LEFT-NOT: asm
; LEFT: call i64 @__kiln_wait_product(
; LEFT-NOT: asm
; LEFT: ret void
define void @left_early(ptr %out, float %a0, float %a1, float %b0, float %b1, float %c0, float %c1) {
entry:
  %index = call i32 @__kiln_value(i32 18)
  %is_odd = trunc i32 %index to i1
  br i1 %is_odd, label %end, label %go
go:
  %r = call i64 @__kiln_matrix_product(i32 7, i32 2, i32 2, float %a0, float %a1, float %b0, float %b1, float %c0, float %c1) convergent
  store i64 %r, ptr %out
  br label %end
end:
  ret void
}
