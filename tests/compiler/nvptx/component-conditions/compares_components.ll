; A comparison of vectors, of which bits are read through bytes as InstCombine leaves it, becomes comparisons of
; components.
; RUN: kiln-opt --passes=component-conditions %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: @all_of_three(
; CHECK-NOT: <
; CHECK: icmp sgt i32 %x, -1
; CHECK-NOT: <
; CHECK: icmp sgt i32 %y, -1
; CHECK-NOT: <
; CHECK: ret
define i1 @all_of_three(i32 %x, i32 %y) {
  %a = insertelement <3 x i32> poison, i32 %x, i64 0
  %b = insertelement <3 x i32> %a, i32 %y, i64 1
  %c = insertelement <3 x i32> %b, i32 7, i64 2
  %compared = icmp sgt <3 x i32> %c, <i32 -1, i32 -1, i32 -1>
  %bytes = zext <3 x i1> %compared to <3 x i8>
  %bits = bitcast <3 x i8> %bytes to <24 x i1>
  %r0 = extractelement <24 x i1> %bits, i64 0
  %r1 = extractelement <24 x i1> %bits, i64 8
  %r2 = extractelement <24 x i1> %bits, i64 16
  %both = and i1 %r0, %r1
  %all = and i1 %both, %r2
  ret i1 %all
}
