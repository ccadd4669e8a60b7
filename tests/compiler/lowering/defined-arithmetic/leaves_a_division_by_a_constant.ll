; A constant divisor that is neither 0 nor -1 cannot fail, so nothing is added. Nor does a division of floats need it.
; RUN: kiln-opt --passes=defined-arithmetic %s | FileCheck %s

; CHECK-LABEL: define i32 @by_constants(
; CHECK-NOT: select
; CHECK: %a = sdiv i32 %x, 3
; CHECK-NEXT: %b = srem i32 %a, -2
; CHECK-NEXT: %c = udiv i32 %b, 7
; CHECK-NEXT: %d = urem i32 %c, 1
; CHECK-NEXT: ret i32 %d
define i32 @by_constants(i32 %x) {
  %a = sdiv i32 %x, 3
  %b = srem i32 %a, -2
  %c = udiv i32 %b, 7
  %d = urem i32 %c, 1
  ret i32 %d
}

; CHECK-LABEL: define float @floats(
; CHECK-NEXT: %q = fdiv float %x, %y
; CHECK-NEXT: ret float %q
define float @floats(float %x, float %y) {
  %q = fdiv float %x, %y
  ret float %q
}
