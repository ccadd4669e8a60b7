; cvt.rzi saturates and makes 0 of a NaN in 32 bits, as Metal's conversions do, so no comparisons are needed. In 64 bits
; a NaN needs a test, and narrower integers are clamped.
; RUN: kiln-opt --passes=hardware-operations %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: @to_int(
; CHECK-NEXT: %[[WHOLE:.*]] = call i32 @llvm.nvvm.f2i.rz(float %x)
; CHECK-NEXT: ret i32 %[[WHOLE]]
define i32 @to_int(float %x) {
  %whole = call i32 @llvm.fptosi.sat.i32.f32(float %x)
  ret i32 %whole
}

; CHECK-LABEL: @to_uint(
; CHECK-NEXT: %[[WHOLE:.*]] = call i32 @llvm.nvvm.f2ui.rz(float %x)
; CHECK-NEXT: ret i32 %[[WHOLE]]
define i32 @to_uint(float %x) {
  %whole = call i32 @llvm.fptoui.sat.i32.f32(float %x)
  ret i32 %whole
}

; CHECK-LABEL: @to_long(
; CHECK: %[[WHOLE:.*]] = call i64 @llvm.nvvm.f2ll.rz(float %x)
; CHECK: %[[NAN:.*]] = fcmp uno float %x, %x
; CHECK: select i1 %[[NAN]], i64 0, i64 %[[WHOLE]]
define i64 @to_long(float %x) {
  %whole = call i64 @llvm.fptosi.sat.i64.f32(float %x)
  ret i64 %whole
}

; CHECK-LABEL: @to_char(
; CHECK: %[[WHOLE:.*]] = call i32 @llvm.nvvm.f2i.rz(float %x)
; CHECK: %[[LOW:.*]] = call i32 @llvm.smin.i32(i32 %[[WHOLE]], i32 127)
; CHECK: %[[BOTH:.*]] = call i32 @llvm.smax.i32(i32 %[[LOW]], i32 -128)
; CHECK: trunc i32 %[[BOTH]] to i8
define i8 @to_char(float %x) {
  %whole = call i8 @llvm.fptosi.sat.i8.f32(float %x)
  ret i8 %whole
}

; CHECK-LABEL: @to_ushort(
; CHECK: %[[WHOLE:.*]] = call i32 @llvm.nvvm.f2ui.rz(float %x)
; CHECK: %[[LOW:.*]] = call i32 @llvm.umin.i32(i32 %[[WHOLE]], i32 65535)
; CHECK: trunc i32 %[[LOW]] to i16
define i16 @to_ushort(float %x) {
  %whole = call i16 @llvm.fptoui.sat.i16.f32(float %x)
  ret i16 %whole
}

; CHECK-LABEL: @from_half(
; CHECK: %[[WIDE:.*]] = fpext half %x to float
; CHECK: call i32 @llvm.nvvm.f2i.rz(float %[[WIDE]])
define i32 @from_half(half %x) {
  %whole = call i32 @llvm.fptosi.sat.i32.f16(half %x)
  ret i32 %whole
}
