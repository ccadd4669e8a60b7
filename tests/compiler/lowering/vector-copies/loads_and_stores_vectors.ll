; Copies of a float4, a half4, a half2 and a half become a load and a store each, with the copy's alignments.
; RUN: kiln-opt --passes=vector-copies %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"

@tile = internal global [64 x float] poison, section "kiln.threadgroup", align 16

; CHECK-LABEL: @sizes(
; CHECK-NOT: memcpy
; CHECK: %[[A:.*]] = load <4 x i32>, ptr %x, align 16
; CHECK-NEXT: store <4 x i32> %[[A]], ptr %y, align 4
; CHECK: %[[B:.*]] = load <2 x i32>, ptr %x, align 8
; CHECK-NEXT: store <2 x i32> %[[B]], ptr %y, align 8
; CHECK: %[[C:.*]] = load i32, ptr %x, align 4
; CHECK-NEXT: store i32 %[[C]], ptr %y, align 4
; CHECK: %[[D:.*]] = load i16, ptr %x, align 1
; CHECK-NEXT: store i16 %[[D]], ptr %y, align 1
; CHECK-NEXT: ret void
define void @sizes(ptr %x, i64 %i) {
  %y = getelementptr float, ptr @tile, i64 %i
  call void @llvm.memcpy.p0.p0.i64(ptr align 4 %y, ptr align 16 %x, i64 16, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %y, ptr align 8 %x, i64 8, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr align 4 %y, ptr align 4 %x, i64 4, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %y, ptr %x, i64 2, i1 false)
  ret void
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
