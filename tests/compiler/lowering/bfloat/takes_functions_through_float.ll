; Functions whose result in float rounds to the right bfloat are called for floats, a multiply-add as one fma. A
; saturating conversion to an integer reads the exact float.
; RUN: kiln-opt --passes=bfloat %s | FileCheck %s

declare bfloat @llvm.sqrt.bf16(bfloat)
declare bfloat @llvm.fmuladd.bf16(bfloat, bfloat, bfloat)
declare i32 @llvm.fptosi.sat.i32.bf16(bfloat)

; CHECK-LABEL: define bfloat @root(
; CHECK: call float @llvm.sqrt.f32(float
; CHECK-NOT: @llvm.sqrt.bf16
; CHECK: ret bfloat
define bfloat @root(bfloat %x) {
  %r = call bfloat @llvm.sqrt.bf16(bfloat %x)
  ret bfloat %r
}

; CHECK-LABEL: define bfloat @multiply_add(
; CHECK: call float @llvm.fma.f32(float
; CHECK-NOT: @llvm.fmuladd
; CHECK: ret bfloat
define bfloat @multiply_add(bfloat %x, bfloat %y, bfloat %z) {
  %r = call bfloat @llvm.fmuladd.bf16(bfloat %x, bfloat %y, bfloat %z)
  ret bfloat %r
}

; CHECK-LABEL: define i32 @converted(
; CHECK: call i32 @llvm.fptosi.sat.i32.f32(float
; CHECK-NOT: @llvm.fptosi.sat.i32.bf16
; CHECK: ret i32
define i32 @converted(bfloat %x) {
  %r = call i32 @llvm.fptosi.sat.i32.bf16(bfloat %x)
  ret i32 %r
}
