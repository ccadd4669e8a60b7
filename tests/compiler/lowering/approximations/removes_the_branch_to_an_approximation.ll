; Safe mode: the constant is false, and no branch is left in the function that had it. In a function that nothing calls any
; more, the instruction goes too.
; RUN: kiln-opt --passes=approximations %s | FileCheck %s

declare i1 @__kiln_approximates()
declare float @__kiln_approximate(i32, float)

; CHECK-LABEL: define float @approximated(
; CHECK-NOT: @__kiln_approximate
; CHECK: ret float
define float @approximated(float %x) {
  %result = call float @__kiln_approximate(i32 0, float %x)
  ret float %result
}

; CHECK-LABEL: define float @exp2(
; CHECK-NOT: br i1
; CHECK-NOT: call float @approximated
; CHECK: %[[EXACT:.*]] = fadd float %x, 1.000000e+00
; CHECK: ret float %[[EXACT]]
define float @exp2(float %x) {
  %chosen = call i1 @__kiln_approximates()
  br i1 %chosen, label %approximate, label %exact
approximate:
  %a = call float @approximated(float %x)
  ret float %a
exact:
  %b = fadd float %x, 1.0
  ret float %b
}
