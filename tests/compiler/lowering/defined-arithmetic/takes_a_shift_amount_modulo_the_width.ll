; x << n counts n modulo the width of x, whatever the width and the kind of shift.
; RUN: kiln-opt --passes=defined-arithmetic %s | FileCheck %s

; CHECK-LABEL: define i32 @left(
; CHECK: [[AMOUNT:%.*]] = and i32 %n, 31
; CHECK: %s = shl i32 %x, [[AMOUNT]]
define i32 @left(i32 %x, i32 %n) {
  %s = shl i32 %x, %n
  ret i32 %s
}

; CHECK-LABEL: define i64 @right(
; CHECK: [[AMOUNT:%.*]] = and i64 %n, 63
; CHECK: %s = lshr i64 %x, [[AMOUNT]]
define i64 @right(i64 %x, i64 %n) {
  %s = lshr i64 %x, %n
  ret i64 %s
}

; CHECK-LABEL: define <2 x i16> @components(
; CHECK: [[AMOUNT:%.*]] = and <2 x i16> %n, <i16 15, i16 15>
; CHECK: %s = ashr <2 x i16> %x, [[AMOUNT]]
define <2 x i16> @components(<2 x i16> %x, <2 x i16> %n) {
  %s = ashr <2 x i16> %x, %n
  ret <2 x i16> %s
}

; The last amount that fits, and the first two that do not.
; CHECK-LABEL: define i32 @constants(
; CHECK: %a = shl i32 %x, 31
; CHECK: %b = shl i32 %a, 0
; CHECK: %c = shl i32 %b, 1
define i32 @constants(i32 %x) {
  %a = shl i32 %x, 31
  %b = shl i32 %a, 32
  %c = shl i32 %b, 33
  ret i32 %c
}
