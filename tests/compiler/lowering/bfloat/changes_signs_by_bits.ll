; A change of the sign is exact and needs no float: not even a NaN changes otherwise.
; RUN: kiln-opt --passes=bfloat %s | FileCheck %s

declare bfloat @llvm.fabs.bf16(bfloat)
declare bfloat @llvm.copysign.bf16(bfloat, bfloat)

; CHECK-LABEL: define bfloat @negated(
; CHECK: [[BITS:%.*]] = bitcast bfloat %x to i16
; CHECK: [[FLIPPED:%.*]] = xor i16 [[BITS]], -32768
; CHECK: [[RESULT:%.*]] = bitcast i16 [[FLIPPED]] to bfloat
; CHECK: ret bfloat [[RESULT]]
define bfloat @negated(bfloat %x) {
  %n = fneg bfloat %x
  ret bfloat %n
}

; CHECK-LABEL: define bfloat @magnitude(
; CHECK-NOT: {{zext|shl}}
; CHECK: and i16 {{.*}}, 32767
; CHECK-NOT: @llvm.fabs
; CHECK: ret bfloat
define bfloat @magnitude(bfloat %x) {
  %m = call bfloat @llvm.fabs.bf16(bfloat %x)
  ret bfloat %m
}

; CHECK-LABEL: define bfloat @sign_of_another(
; CHECK-DAG: and i16 {{.*}}, 32767
; CHECK-DAG: and i16 {{.*}}, -32768
; CHECK: or i16
; CHECK-NOT: @llvm.copysign
; CHECK: ret bfloat
define bfloat @sign_of_another(bfloat %x, bfloat %y) {
  %s = call bfloat @llvm.copysign.bf16(bfloat %x, bfloat %y)
  ret bfloat %s
}
