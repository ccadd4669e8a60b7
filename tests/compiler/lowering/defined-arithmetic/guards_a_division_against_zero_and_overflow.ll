; x / 0 is x and x % 0 is 0: the divisor counts as 1. A signed division has one more case, MIN / -1, which overflows.
; RUN: kiln-opt --passes=defined-arithmetic %s | FileCheck %s

; CHECK-LABEL: define i32 @unsigned_quotient(
; CHECK: [[IS_ZERO:%.*]] = icmp eq i32 %y, 0
; CHECK-NEXT: [[DIVISOR:%.*]] = select i1 [[IS_ZERO]], i32 1, i32 %y
; CHECK-NEXT: %q = udiv i32 %x, [[DIVISOR]]
define i32 @unsigned_quotient(i32 %x, i32 %y) {
  %q = udiv i32 %x, %y
  ret i32 %q
}

; CHECK-LABEL: define i32 @signed_remainder(
; CHECK-DAG: [[IS_ZERO:%.*]] = icmp eq i32 %y, 0
; CHECK-DAG: [[IS_MIN:%.*]] = icmp eq i32 %x, -2147483648
; CHECK-DAG: [[IS_MINUS_ONE:%.*]] = icmp eq i32 %y, -1
; CHECK: [[OVERFLOWS:%.*]] = and i1 [[IS_MIN]], [[IS_MINUS_ONE]]
; CHECK: [[IS_BAD:%.*]] = or i1 [[IS_ZERO]], [[OVERFLOWS]]
; CHECK: [[DIVISOR:%.*]] = select i1 [[IS_BAD]], i32 1, i32 %y
; CHECK: %r = srem i32 %x, [[DIVISOR]]
define i32 @signed_remainder(i32 %x, i32 %y) {
  %r = srem i32 %x, %y
  ret i32 %r
}

; CHECK-LABEL: define <2 x i8> @components(
; CHECK: icmp eq <2 x i8> %x, <i8 -128, i8 -128>
; CHECK: [[DIVISOR:%.*]] = select <2 x i1> {{.*}}, <2 x i8> <i8 1, i8 1>, <2 x i8> %y
; CHECK: %q = sdiv <2 x i8> %x, [[DIVISOR]]
define <2 x i8> @components(<2 x i8> %x, <2 x i8> %y) {
  %q = sdiv <2 x i8> %x, %y
  ret <2 x i8> %q
}
