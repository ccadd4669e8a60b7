; Doubles and wide integers reach bfloat through float, but as if rounded once: a value just above the middle between
; two bfloats, which the nearest float hides, still goes up. Integers of fewer than 24 bits are floats already.
; RUN: kiln-opt --passes=bfloat,instsimplify %s | FileCheck %s

; 1 + 2^-8 + 2^-40: the nearest float is 1 + 2^-8, which alone would go to 1.
; CHECK-LABEL: define bfloat @of_a_double(
; CHECK: ret bfloat 0xR3F81
define bfloat @of_a_double() {
  %r = fptrunc double 0x3FF0100000001000 to bfloat
  ret bfloat %r
}

; CHECK-LABEL: define bfloat @just_below(
; CHECK: ret bfloat 0xR3F80
define bfloat @just_below() {
  %r = fptrunc double 0x3FF00FFFFFFFF000 to bfloat
  ret bfloat %r
}

; 2^24 + 2^16 + 1, and the same below 0.
; CHECK-LABEL: define bfloat @of_an_integer(
; CHECK: ret bfloat 0xR4B81
define bfloat @of_an_integer() {
  %r = sitofp i32 16842753 to bfloat
  ret bfloat %r
}

; CHECK-LABEL: define bfloat @of_a_negative_integer(
; CHECK: ret bfloat 0xRCB81
define bfloat @of_a_negative_integer() {
  %r = sitofp i32 -16842753 to bfloat
  ret bfloat %r
}

; 2^32 - 1 and 2^24 + 2^16, the tie.
; CHECK-LABEL: define bfloat @largest(
; CHECK: ret bfloat 0xR4F80
define bfloat @largest() {
  %r = uitofp i32 -1 to bfloat
  ret bfloat %r
}

; CHECK-LABEL: define bfloat @tie(
; CHECK: ret bfloat 0xR4B80
define bfloat @tie() {
  %r = uitofp i32 16842752 to bfloat
  ret bfloat %r
}

; CHECK-LABEL: define bfloat @of_23_bits(
; CHECK: sitofp i23 %i to float
; CHECK-NOT: @llvm.fptosi.sat
; CHECK: ret bfloat
define bfloat @of_23_bits(i23 %i) {
  %r = sitofp i23 %i to bfloat
  ret bfloat %r
}

; CHECK-LABEL: define bfloat @of_32_bits(
; CHECK: call i32 @llvm.fptosi.sat.i32.f32(
; CHECK: ret bfloat
define bfloat @of_32_bits(i32 %i) {
  %r = sitofp i32 %i to bfloat
  ret bfloat %r
}
