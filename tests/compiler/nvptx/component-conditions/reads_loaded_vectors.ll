; Components of what is loaded are read from the vector; the comparison is of components.
; RUN: kiln-opt --passes=component-conditions %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: @second(
; CHECK: %[[PAIR:.*]] = load <2 x float>
; CHECK: %[[Y:.*]] = extractelement <2 x float> %[[PAIR]], i64 1
; CHECK: %[[LESS:.*]] = fcmp olt float %[[Y]], %limit
; CHECK: ret i1 %[[LESS]]
define i1 @second(ptr addrspace(1) %p, float %limit) {
  %v = load <2 x float>, ptr addrspace(1) %p
  %l = insertelement <2 x float> poison, float %limit, i64 0
  %s = shufflevector <2 x float> %l, <2 x float> poison, <2 x i32> zeroinitializer
  %c = fcmp olt <2 x float> %v, %s
  %bytes = sext <2 x i1> %c to <2 x i8>
  %b = trunc <2 x i8> %bytes to <2 x i1>
  %r = extractelement <2 x i1> %b, i64 1
  ret i1 %r
}
