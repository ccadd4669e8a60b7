; What is done with an address that is passed or stored is not known, so it may reach any member. A copy from an
; argument is one access, with one guard; its parts would need one each.
; RUN: kiln-opt --passes=split-structures %s | FileCheck %s

%cursor = type { ptr, [4 x float] }

declare void @use(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; CHECK-LABEL: define float @passed(
; CHECK: %c = alloca %cursor
; CHECK: call void @use(ptr %c)
define float @passed(ptr %in, i64 %i) {
  %c = alloca %cursor, align 8
  store ptr %in, ptr %c
  call void @use(ptr %c)
  %b = getelementptr %cursor, ptr %c, i64 0, i32 1, i64 %i
  %w = load float, ptr %b
  ret float %w
}

; CHECK-LABEL: define float @stored(
; CHECK: %c = alloca %cursor
; CHECK: store ptr %c, ptr %out
define float @stored(ptr %in, ptr %out, i64 %i) {
  %c = alloca %cursor, align 8
  store ptr %in, ptr %c
  store ptr %c, ptr %out
  %b = getelementptr %cursor, ptr %c, i64 0, i32 1, i64 %i
  %w = load float, ptr %b
  ret float %w
}

; CHECK-LABEL: define float @copied_from_an_argument(
; CHECK: %c = alloca %cursor
; CHECK: call void @llvm.memcpy.p0.p0.i64(ptr align 8 %c, ptr align 8 %in, i64 24, i1 false)
define float @copied_from_an_argument(ptr %in, i64 %i) {
  %c = alloca %cursor, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %c, ptr align 8 %in, i64 24, i1 false)
  %b = getelementptr %cursor, ptr %c, i64 0, i32 1, i64 %i
  %w = load float, ptr %b
  ret float %w
}
