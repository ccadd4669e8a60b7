; The memory of a failed guard holds zero bits: they are 0.0, but neither -0.0 nor 1, and a mask with one of these is
; not what the load would give.
; RUN: kiln-opt --passes=masked-loads %s | FileCheck %s

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer, align 64

; CHECK-LABEL: define float @negative_zero(
; CHECK: %p = select i1 %inside, ptr %a, ptr @__kiln_zeros.64
; CHECK: %m = select i1 %mask, float %x, float -0.000000e+00
; CHECK: ret float %m
define float @negative_zero(ptr %a, i1 %inside, i1 %mask) {
  %p = select i1 %inside, ptr %a, ptr @__kiln_zeros.64
  %x = load float, ptr %p
  %m = select i1 %mask, float %x, float -0.0
  ret float %m
}

; CHECK-LABEL: define i32 @one(
; CHECK: %p = select i1 %inside, ptr %a, ptr @__kiln_zeros.64
; CHECK: %m = select i1 %mask, i32 %x, i32 1
; CHECK: ret i32 %m
define i32 @one(ptr %a, i1 %inside, i1 %mask) {
  %p = select i1 %inside, ptr %a, ptr @__kiln_zeros.64
  %x = load i32, ptr %p
  %m = select i1 %mask, i32 %x, i32 1
  ret i32 %m
}

; A mask for each component is not one for the whole load.
; CHECK-LABEL: define <2 x float> @by_component(
; CHECK: %p = select i1 %inside, ptr %a, ptr @__kiln_zeros.64
; CHECK: %m = select <2 x i1> %mask, <2 x float> %x, <2 x float> zeroinitializer
define <2 x float> @by_component(ptr %a, i1 %inside, <2 x i1> %mask) {
  %p = select i1 %inside, ptr %a, ptr @__kiln_zeros.64
  %x = load <2 x float>, ptr %p
  %m = select <2 x i1> %mask, <2 x float> %x, <2 x float> zeroinitializer
  ret <2 x float> %m
}
