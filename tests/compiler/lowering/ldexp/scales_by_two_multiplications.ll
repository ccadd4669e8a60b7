; A product with 2^n becomes two, with 2^(n/2) and with 2^(n - n/2), each made from the exponent's bits. The exponent as
; a float, for AVX-512's instruction, is not used, and the function is gone.
; RUN: kiln-opt --passes=ldexp %s | FileCheck %s

declare float @__kiln_scaled(float, float, i32)

; CHECK-NOT: @__kiln_scaled
; CHECK-LABEL: define float @scale(
; CHECK: [[HALF:%.*]] = ashr i32 %n, 1
; CHECK: [[BIASED:%.*]] = add i32 [[HALF]], 127
; CHECK: [[EXPONENT:%.*]] = shl i32 [[BIASED]], 23
; CHECK: [[POWER:%.*]] = bitcast i32 [[EXPONENT]] to float
; CHECK: [[FIRST:%.*]] = fmul float %x, [[POWER]]
; CHECK: [[OTHER:%.*]] = sub i32 %n, [[HALF]]
; CHECK: add i32 [[OTHER]], 127
; CHECK: [[RESULT:%.*]] = fmul float [[FIRST]],
; CHECK: ret float [[RESULT]]
; CHECK-NOT: @__kiln_scaled
define float @scale(float %x, float %f, i32 %n) {
  %r = call float @__kiln_scaled(float %x, float %f, i32 %n)
  ret float %r
}
