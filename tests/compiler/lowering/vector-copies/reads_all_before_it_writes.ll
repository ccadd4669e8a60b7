; A border: source and destination of a memmove may overlap. The load is of the whole, before the store.
; RUN: kiln-opt --passes=vector-copies %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"

@tile = internal global [64 x float] poison, section "kiln.threadgroup", align 16

; CHECK-LABEL: @overlaps(
; CHECK: %[[OLD:.*]] = load <4 x i32>, ptr %x, align 4
; CHECK-NEXT: store <4 x i32> %[[OLD]], ptr %y, align 4
; CHECK-NEXT: ret void
define void @overlaps(i64 %i) {
  %x = getelementptr float, ptr @tile, i64 %i
  %y = getelementptr float, ptr %x, i64 1
  call void @llvm.memmove.p0.p0.i64(ptr align 4 %y, ptr align 4 %x, i64 16, i1 false)
  ret void
}

declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
