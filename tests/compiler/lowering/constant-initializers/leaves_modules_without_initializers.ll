; Without a list of functions to run before the program nothing is evaluated: a variable that could be constant stays
; one.
; RUN: kiln-opt --passes=constant-initializers %s | FileCheck %s

; CHECK: @value = internal global float 1.000000e+00
; CHECK: @table = internal constant [2 x float] [float 1.000000e+00, float 2.000000e+00]
@value = internal global float 1.0
@table = internal constant [2 x float] [float 1.0, float 2.0]

; CHECK-LABEL: define internal void @initialize(
; CHECK-NEXT: store float 2.000000e+00, ptr @value
define internal void @initialize() {
  store float 2.0, ptr @value
  ret void
}

; CHECK-LABEL: define float @body(
; CHECK-NEXT: call void @initialize()
; CHECK-NEXT: %x = load float, ptr @value
; CHECK-NEXT: ret float %x
define float @body() {
  call void @initialize()
  %x = load float, ptr @value
  ret float %x
}
