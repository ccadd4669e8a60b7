; The border is the type that is chosen: x86 has a maximum of floats and of doubles, which code may use, and integers of
; 16 bits are what halves become.
; RUN: kiln-opt --passes=half-selects %s | FileCheck %s

; CHECK-LABEL: define float @floats(
; CHECK-NEXT: %c = fcmp ogt float %x, %y
; CHECK-NEXT: %m = select i1 %c, float %x, float %y
; CHECK-NEXT: ret float %m
define float @floats(float %x, float %y) {
  %c = fcmp ogt float %x, %y
  %m = select i1 %c, float %x, float %y
  ret float %m
}

; CHECK-LABEL: define i16 @integers(
; CHECK-NEXT: %c = fcmp ogt half %x, %y
; CHECK-NEXT: %m = select i1 %c, i16 %i, i16 %j
; CHECK-NEXT: ret i16 %m
define i16 @integers(half %x, half %y, i16 %i, i16 %j) {
  %c = fcmp ogt half %x, %y
  %m = select i1 %c, i16 %i, i16 %j
  ret i16 %m
}
