; RUN: kiln-opt --passes=half-operations %s | FileCheck %s
; What has instructions of its own stays: no conversion is added.

; CHECK-NOT: fpext
; CHECK-LABEL: define <4 x i1> @floats(
; CHECK-NEXT: fcmp olt <4 x float> %x, %y
define <4 x i1> @floats(<4 x float> %x, <4 x float> %y) {
  %c = fcmp olt <4 x float> %x, %y
  ret <4 x i1> %c
}

; CHECK-LABEL: define <4 x i1> @constant(
; CHECK-NEXT: fcmp ogt <4 x double> %x, zeroinitializer
define <4 x i1> @constant(<4 x double> %x) {
  %c = fcmp ogt <4 x double> %x, zeroinitializer
  ret <4 x i1> %c
}
