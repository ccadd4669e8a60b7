; `a < b || a != a ? b : a`, in which a NaN loses to a number. The comparison's own select no longer waits for the NaN
; test. Integers that hold the floats' bits, and selects in place of `or`, are the same idiom.
; RUN: kiln-opt --passes=min-max-idiom %s | FileCheck %s

; CHECK-LABEL: @maximum(
; CHECK: %less = fcmp olt float %a, %b
; CHECK: %[[MAX:.*]] = select i1 %less, float %b, float %a
; CHECK: %[[NAN:.*]] = fcmp uno float %a, %a
; CHECK: %[[RESULT:.*]] = select i1 %[[NAN]], float %b, float %[[MAX]]
; CHECK: ret float %[[RESULT]]
define float @maximum(float %a, float %b) {
  %less = fcmp olt float %a, %b
  %nan = fcmp uno float %a, 0.0
  %either = or i1 %less, %nan
  %result = select i1 %either, float %b, float %a
  ret float %result
}

; The operand that is tested for a NaN is the second one of the comparison.
; CHECK-LABEL: @minimum(
; CHECK: %less = fcmp olt <4 x float> %b, %a
; CHECK: %[[MIN:.*]] = select <4 x i1> %less, <4 x float> %b, <4 x float> %a
; CHECK: %[[NAN:.*]] = fcmp uno <4 x float> %a, %a
; CHECK: select <4 x i1> %[[NAN]], <4 x float> %b, <4 x float> %[[MIN]]
define <4 x float> @minimum(<4 x float> %a, <4 x float> %b) {
  %nan = fcmp uno <4 x float> %a, %a
  %less = fcmp olt <4 x float> %b, %a
  %either = select <4 x i1> %nan, <4 x i1> splat (i1 true), <4 x i1> %less
  %result = select <4 x i1> %either, <4 x float> %b, <4 x float> %a
  ret <4 x float> %result
}

; CHECK-LABEL: @bits(
; CHECK: %[[MAX:.*]] = select i1 %greater, float %b, float %a
; CHECK: %[[NAN:.*]] = fcmp uno float %a, %a
; CHECK: %[[RESULT:.*]] = select i1 %[[NAN]], float %b, float %[[MAX]]
; CHECK: %[[BITS:.*]] = bitcast float %[[RESULT]] to i32
; CHECK: ret i32 %[[BITS]]
define i32 @bits(i32 %x, i32 %y) {
  %a = bitcast i32 %x to float
  %b = bitcast i32 %y to float
  %greater = fcmp ogt float %a, %b
  %nan = fcmp uno float %a, %a
  %either = or i1 %greater, %nan
  %result = select i1 %either, i32 %y, i32 %x
  ret i32 %result
}
