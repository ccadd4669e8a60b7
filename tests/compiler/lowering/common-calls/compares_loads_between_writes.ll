; f(x[i]) twice is one call, unless something may have been written in between: a store need not reach the array.
; RUN: kiln-opt --function=body --passes=common-calls,inline %s | FileCheck %s --check-prefix=BODY
; RUN: kiln-opt --function=written --passes=common-calls,inline %s | FileCheck %s --check-prefix=WRITTEN
; RUN: kiln-opt --function=other_block --passes=common-calls,inline %s | FileCheck %s --check-prefix=BLOCK

; BODY-LABEL: define float @body(
; BODY: fcmp olt
; BODY-NOT: fcmp olt
; BODY: ret float
define float @body(ptr %x) {
  %a = load float, ptr %x
  %b = load float, ptr %x
  %f = call float @chosen(float %a)
  %g = call float @chosen(float %b)
  %sum = fadd float %f, %g
  ret float %sum
}

; WRITTEN-LABEL: define float @written(
; WRITTEN-COUNT-2: fcmp olt
define float @written(ptr %x) {
  %a = load float, ptr %x
  store float %a, ptr %x
  %b = load float, ptr %x
  %f = call float @chosen(float %a)
  %g = call float @chosen(float %b)
  %sum = fadd float %f, %g
  ret float %sum
}

; BLOCK-LABEL: define float @other_block(
; BLOCK-COUNT-2: fcmp olt
define float @other_block(ptr %x) {
  %a = load float, ptr %x
  br label %next
next:
  %b = load float, ptr %x
  %f = call float @chosen(float %a)
  %g = call float @chosen(float %b)
  %sum = fadd float %f, %g
  ret float %sum
}

define internal float @chosen(float %x) {
entry:
  %small = fcmp olt float %x, 1.0
  br i1 %small, label %end, label %large
large:
  %folded = fmul float %x, 0.125
  br label %end
end:
  %r = phi float [ %x, %entry ], [ %folded, %large ]
  ret float %r
}
