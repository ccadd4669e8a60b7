; A float that does not fit an integer gives the nearest value that does, and a NaN gives 0. Conversions the other way
; are always defined and stay.
; RUN: kiln-opt --passes=defined-arithmetic,instsimplify %s | FileCheck %s

; CHECK-LABEL: define i32 @to_signed(
; CHECK: call i32 @llvm.fptosi.sat.i32.f32(float %x)
; CHECK-NOT: fptosi float
define i32 @to_signed(float %x) {
  %i = fptosi float %x to i32
  ret i32 %i
}

; CHECK-LABEL: define <2 x i8> @to_unsigned(
; CHECK: call <2 x i8> @llvm.fptoui.sat.v2i8.v2f16(<2 x half> %x)
define <2 x i8> @to_unsigned(<2 x half> %x) {
  %i = fptoui <2 x half> %x to <2 x i8>
  ret <2 x i8> %i
}

; 300 and -1 do not fit a byte.
; CHECK-LABEL: define i8 @too_large(
; CHECK: ret i8 -1
define i8 @too_large() {
  %i = fptoui float 300.0 to i8
  ret i8 %i
}

; CHECK-LABEL: define i8 @too_small(
; CHECK: ret i8 0
define i8 @too_small() {
  %i = fptoui float -1.0 to i8
  ret i8 %i
}

; CHECK-LABEL: define i32 @not_a_number(
; CHECK: ret i32 0
define i32 @not_a_number() {
  %i = fptosi float 0x7FF8000000000000 to i32
  ret i32 %i
}

; CHECK-LABEL: define float @from_an_integer(
; CHECK-NEXT: %f = sitofp i32 %x to float
; CHECK-NEXT: ret float %f
define float @from_an_integer(i32 %x) {
  %f = sitofp i32 %x to float
  ret float %f
}
