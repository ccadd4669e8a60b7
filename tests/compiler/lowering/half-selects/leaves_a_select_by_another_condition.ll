; No maximum can come of a select whose condition is not a comparison of floating point, so it stays one of halves.
; RUN: kiln-opt --passes=half-selects %s | FileCheck %s

; CHECK-LABEL: define half @by_integers(
; CHECK-NEXT: %c = icmp sgt i32 %i, %j
; CHECK-NEXT: %m = select i1 %c, half %x, half %y
; CHECK-NEXT: ret half %m
define half @by_integers(half %x, half %y, i32 %i, i32 %j) {
  %c = icmp sgt i32 %i, %j
  %m = select i1 %c, half %x, half %y
  ret half %m
}

; CHECK-LABEL: define half @by_an_argument(
; CHECK-NEXT: %m = select i1 %c, half %x, half %y
; CHECK-NEXT: ret half %m
define half @by_an_argument(half %x, half %y, i1 %c) {
  %m = select i1 %c, half %x, half %y
  ret half %m
}
