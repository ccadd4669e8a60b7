; A structure that is cleared and copied to another variable: each part is cleared and copied for itself, and the
; pointer of the copy is still the argument.
; RUN: kiln-opt --passes=split-structures %s | FileCheck %s

%cursor = type { ptr, [4 x float] }

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; CHECK-LABEL: define float @f(
; CHECK-NOT: alloca %cursor
; CHECK-NOT: load ptr
; CHECK: %v = load float, ptr %in
; CHECK: ret float
define float @f(ptr %in, i64 %i, i64 %j, float %x) {
  %c = alloca %cursor, align 8
  %d = alloca %cursor, align 8
  call void @llvm.memset.p0.i64(ptr align 8 %c, i8 0, i64 24, i1 false)
  store ptr %in, ptr %c
  %a = getelementptr %cursor, ptr %c, i64 0, i32 1, i64 %i
  store float %x, ptr %a
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %d, ptr align 8 %c, i64 24, i1 false)
  %p = load ptr, ptr %d
  %v = load float, ptr %p
  %b = getelementptr %cursor, ptr %d, i64 0, i32 1, i64 %j
  %w = load float, ptr %b
  %s = fadd float %v, %w
  ret float %s
}
