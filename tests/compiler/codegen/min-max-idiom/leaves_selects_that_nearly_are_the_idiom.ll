; Selects that differ from the idiom in one place: what is tested for a NaN, the order of the results, a third value,
; `and` in place of `or`, and comparisons that are true for a NaN or for equal numbers.
; RUN: kiln-opt --passes=min-max-idiom %s | FileCheck %s

; CHECK-LABEL: @tests_the_other(
; CHECK: %either = or i1 %less, %nan
; CHECK-NEXT: %result = select i1 %either, float %b, float %a
; CHECK-NEXT: ret float %result
define float @tests_the_other(float %a, float %b, float %c) {
  %less = fcmp olt float %a, %b
  %nan = fcmp uno float %b, %b
  %either = or i1 %less, %nan
  %result = select i1 %either, float %b, float %a
  ret float %result
}

; CHECK-LABEL: @loses_the_number(
; CHECK: %either = or i1 %less, %nan
; CHECK-NEXT: %result = select i1 %either, float %a, float %b
; CHECK-NEXT: ret float %result
define float @loses_the_number(float %a, float %b, float %c) {
  %less = fcmp olt float %a, %b
  %nan = fcmp uno float %a, %a
  %either = or i1 %less, %nan
  %result = select i1 %either, float %a, float %b
  ret float %result
}

; CHECK-LABEL: @chooses_a_third(
; CHECK: %either = or i1 %less, %nan
; CHECK-NEXT: %result = select i1 %either, float %c, float %a
; CHECK-NEXT: ret float %result
define float @chooses_a_third(float %a, float %b, float %c) {
  %less = fcmp olt float %a, %b
  %nan = fcmp uno float %a, %a
  %either = or i1 %less, %nan
  %result = select i1 %either, float %c, float %a
  ret float %result
}

; CHECK-LABEL: @needs_both(
; CHECK: %either = and i1 %less, %nan
; CHECK-NEXT: %result = select i1 %either, float %b, float %a
; CHECK-NEXT: ret float %result
define float @needs_both(float %a, float %b, float %c) {
  %less = fcmp olt float %a, %b
  %nan = fcmp uno float %a, %a
  %either = and i1 %less, %nan
  %result = select i1 %either, float %b, float %a
  ret float %result
}

; CHECK-LABEL: @unordered(
; CHECK: %either = or i1 %less, %nan
; CHECK-NEXT: %result = select i1 %either, float %b, float %a
; CHECK-NEXT: ret float %result
define float @unordered(float %a, float %b, float %c) {
  %less = fcmp ult float %a, %b
  %nan = fcmp uno float %a, %a
  %either = or i1 %less, %nan
  %result = select i1 %either, float %b, float %a
  ret float %result
}

; CHECK-LABEL: @or_equal(
; CHECK: %either = or i1 %less, %nan
; CHECK-NEXT: %result = select i1 %either, float %b, float %a
; CHECK-NEXT: ret float %result
define float @or_equal(float %a, float %b, float %c) {
  %less = fcmp ole float %a, %b
  %nan = fcmp uno float %a, %a
  %either = or i1 %less, %nan
  %result = select i1 %either, float %b, float %a
  ret float %result
}

; CHECK-LABEL: @tests_for_a_number(
; CHECK: %either = or i1 %less, %nan
; CHECK-NEXT: %result = select i1 %either, float %b, float %a
; CHECK-NEXT: ret float %result
define float @tests_for_a_number(float %a, float %b, float %c) {
  %less = fcmp olt float %a, %b
  %nan = fcmp ord float %a, %a
  %either = or i1 %less, %nan
  %result = select i1 %either, float %b, float %a
  ret float %result
}
