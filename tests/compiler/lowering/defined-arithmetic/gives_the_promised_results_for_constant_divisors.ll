; The divisors 0 and -1, at the border of those that are safe: x / 0 = x, x % 0 = 0, MIN / -1 = MIN, MIN % -1 = 0.
; LLVM's own simplification, which could exploit undefined behaviour, then finds these values and no poison.
; RUN: kiln-opt --passes=defined-arithmetic,instsimplify %s | FileCheck %s

; CHECK-LABEL: define i32 @quotient_by_zero(
; CHECK: ret i32 %x
define i32 @quotient_by_zero(i32 %x) {
  %q = sdiv i32 %x, 0
  ret i32 %q
}

; CHECK-LABEL: define i32 @unsigned_quotient_by_zero(
; CHECK: ret i32 %x
define i32 @unsigned_quotient_by_zero(i32 %x) {
  %q = udiv i32 %x, 0
  ret i32 %q
}

; CHECK-LABEL: define i32 @remainder_by_zero(
; CHECK: ret i32 0
define i32 @remainder_by_zero(i32 %x) {
  %r = urem i32 %x, 0
  ret i32 %r
}

; CHECK-LABEL: define i32 @smallest_by_minus_one(
; CHECK: ret i32 -2147483648
define i32 @smallest_by_minus_one() {
  %q = sdiv i32 -2147483648, -1
  ret i32 %q
}

; CHECK-LABEL: define i16 @remainder_of_smallest_by_minus_one(
; CHECK: ret i16 0
define i16 @remainder_of_smallest_by_minus_one() {
  %r = srem i16 -32768, -1
  ret i16 %r
}

; One above the smallest: an ordinary division.
; CHECK-LABEL: define i32 @next_to_smallest_by_minus_one(
; CHECK: ret i32 2147483647
define i32 @next_to_smallest_by_minus_one() {
  %q = sdiv i32 -2147483647, -1
  ret i32 %q
}
