; Clang leaves a constant made from components of a vector to a function that would run before the program. It is
; evaluated here: the variable gets the value and is a constant, and function and list are gone.
; RUN: kiln-opt --passes=constant-initializers %s | FileCheck %s

; CHECK-NOT: @llvm.global_ctors
; CHECK: @scale = internal constant <2 x float> <float 3.000000e+00, float 2.000000e+00>
; CHECK: @half_of_it = internal constant float 1.500000e+00
; CHECK-NOT: @initialize

@scale = internal global <2 x float> zeroinitializer
@half_of_it = internal global float 0.0
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [
  { i32, ptr, ptr } { i32 65535, ptr @initialize, ptr null }
]

define internal void @initialize() {
  %v = alloca <2 x float>
  store <2 x float> <float 1.0, float 2.0>, ptr %v
  %w = load <2 x float>, ptr %v
  %x = insertelement <2 x float> %w, float 3.0, i32 0
  store <2 x float> %x, ptr @scale
  %s = load <2 x float>, ptr @scale
  %a = extractelement <2 x float> %s, i32 0
  %h = fmul float %a, 0.5
  store float %h, ptr @half_of_it
  ret void
}

; CHECK-LABEL: define float @body(
; CHECK: load float, ptr @half_of_it
define float @body() {
  %x = load float, ptr @half_of_it
  ret float %x
}
