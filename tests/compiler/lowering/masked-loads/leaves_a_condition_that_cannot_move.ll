; The condition must be known before the load. It is not if it depends on a later load, on a phi, or on an operation
; that may trap.
; RUN: kiln-opt --passes=masked-loads %s | FileCheck %s

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer, align 64

; CHECK-LABEL: define float @depends_on_another_load(
; CHECK: %p = select i1 %inside, ptr %a, ptr @__kiln_zeros.64
; CHECK: %m = select i1 %mask, float %y, float 0.000000e+00
define float @depends_on_another_load(ptr %a, ptr %b, i1 %inside) {
  %q = select i1 %inside, ptr %b, ptr @__kiln_zeros.64
  %p = select i1 %inside, ptr %a, ptr @__kiln_zeros.64
  %y = load float, ptr %p
  %x = load float, ptr %q
  %mask = fcmp ogt float %x, 0.0
  %m = select i1 %mask, float %y, float 0.0
  ret float %m
}

; CHECK-LABEL: define float @depends_on_a_phi(
; CHECK: %p = select i1 %inside, ptr %a, ptr @__kiln_zeros.64
; CHECK: %m = select i1 %mask, float %x, float 0.000000e+00
define float @depends_on_a_phi(ptr %a, i1 %inside, i1 %c) {
entry:
  %p = select i1 %inside, ptr %a, ptr @__kiln_zeros.64
  %x = load float, ptr %p
  br i1 %c, label %other, label %end

other:
  br label %end

end:
  %mask = phi i1 [ true, %entry ], [ %inside, %other ]
  %m = select i1 %mask, float %x, float 0.0
  ret float %m
}

; CHECK-LABEL: define float @may_trap(
; CHECK: %p = select i1 %inside, ptr %a, ptr @__kiln_zeros.64
; CHECK-NEXT: %x = load float, ptr %p
; CHECK-NEXT: %q = sdiv i32 %i, %n
; CHECK: %m = select i1 %mask, float %x, float 0.000000e+00
define float @may_trap(ptr %a, i1 %inside, i32 %i, i32 %n) {
  %p = select i1 %inside, ptr %a, ptr @__kiln_zeros.64
  %x = load float, ptr %p
  %q = sdiv i32 %i, %n
  %mask = icmp eq i32 %q, 0
  %m = select i1 %mask, float %x, float 0.0
  ret float %m
}
