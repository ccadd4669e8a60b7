; The borders of rounding, on constants: values in the middle between two bfloats go to the even one, those beside the
; middle to the nearer one, those past the largest to infinity, and a signaling NaN becomes a quiet one (not infinity).
; RUN: kiln-opt --passes=bfloat %s | FileCheck %s

; 1 + 2^-8 is between 1 (even) and 1 + 2^-7.
; CHECK-LABEL: define bfloat @tie_down(
; CHECK: ret bfloat 0xR3F80
define bfloat @tie_down() {
  %r = fadd bfloat 0xR3F80, 0xR3B80
  ret bfloat %r
}

; 1 + 2^-7 + 2^-8 is between 1 + 2^-7 and 1 + 2^-6 (even).
; CHECK-LABEL: define bfloat @tie_up(
; CHECK: ret bfloat 0xR3F82
define bfloat @tie_up() {
  %r = fadd bfloat 0xR3F81, 0xR3B80
  ret bfloat %r
}

; The float above 1 + 2^-8, and the one below.
; CHECK-LABEL: define bfloat @above_the_middle(
; CHECK: ret bfloat 0xR3F81
define bfloat @above_the_middle() {
  %r = fptrunc float 0x3FF0100020000000 to bfloat
  ret bfloat %r
}

; CHECK-LABEL: define bfloat @below_the_middle(
; CHECK: ret bfloat 0xR3F80
define bfloat @below_the_middle() {
  %r = fptrunc float 0x3FF00FFFE0000000 to bfloat
  ret bfloat %r
}

; CHECK-LABEL: define bfloat @too_large(
; CHECK: ret bfloat 0xR7F80
define bfloat @too_large() {
  %r = fptrunc float 0x47EFFFFFE0000000 to bfloat
  ret bfloat %r
}

; Subnormals are not flushed: 2^-133 is the smallest.
; CHECK-LABEL: define bfloat @subnormal(
; CHECK: ret bfloat 0xR0001
define bfloat @subnormal() {
  %r = fptrunc float 0x37A0000000000000 to bfloat
  ret bfloat %r
}

; CHECK-LABEL: define bfloat @signaling(
; CHECK: ret bfloat 0xR7FC0
define bfloat @signaling() {
  %r = fptrunc float 0x7FF0000020000000 to bfloat
  ret bfloat %r
}
