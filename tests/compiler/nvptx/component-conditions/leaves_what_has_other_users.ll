; A vector that is frozen, and one with an element at a variable index, are read as they are, wherever they are defined.
; RUN: kiln-opt --passes=component-conditions %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: @frozen(
; CHECK: %v = freeze <2 x i8> %a
; CHECK: extractelement <2 x i8> %v, i64 0
; CHECK-NOT: freeze
; CHECK: ret
define i8 @frozen(<2 x i8> %a, ptr %p) {
  %v = freeze <2 x i8> %a
  %r = extractelement <2 x i8> %v, i64 0
  store <2 x i8> %v, ptr %p
  ret i8 %r
}

; CHECK-LABEL: @inserted(
; CHECK: extractelement <2 x i8> %v, i64 0
define i8 @inserted(<2 x i8> %a, i8 %b, i32 %i) {
entry:
  br label %def
use:
  %r = extractelement <2 x i8> %v, i64 0
  ret i8 %r
def:
  %v = insertelement <2 x i8> %a, i8 %b, i32 %i
  br label %use
}
