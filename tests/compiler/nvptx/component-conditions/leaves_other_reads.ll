; A bit inside a byte, a component at a variable index, bytes that were loaded, and floats stay as they are.
; RUN: kiln-opt --passes=component-conditions %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: @bit(
; CHECK: extractelement <16 x i1> %bits, i64 3
define i1 @bit(<2 x i1> %c) {
  %bytes = zext <2 x i1> %c to <2 x i8>
  %bits = bitcast <2 x i8> %bytes to <16 x i1>
  %r = extractelement <16 x i1> %bits, i64 3
  ret i1 %r
}

; CHECK-LABEL: @variable(
; CHECK: extractelement <2 x i1> %c, i32 %i
define i1 @variable(<2 x i32> %a, i32 %i) {
  %c = icmp eq <2 x i32> %a, zeroinitializer
  %r = extractelement <2 x i1> %c, i32 %i
  ret i1 %r
}

; CHECK-LABEL: @loaded(
; CHECK: extractelement <4 x i8> %v, i64 2
define i8 @loaded(ptr addrspace(1) %p) {
  %v = load <4 x i8>, ptr addrspace(1) %p
  %r = extractelement <4 x i8> %v, i64 2
  ret i8 %r
}

; CHECK-LABEL: @floats(
; CHECK: fadd <2 x float>
define float @floats(<2 x float> %a) {
  %s = fadd <2 x float> %a, %a
  %r = extractelement <2 x float> %s, i64 1
  ret float %r
}
