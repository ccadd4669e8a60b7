; The load must give its value to other uses, so the mask stays. A mask on a load without a guard, or on one whose guard
; chooses memory other than Kiln's zeros, stays too.
; RUN: kiln-opt --passes=masked-loads %s | FileCheck %s

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer, align 64
@other = internal constant [64 x i8] zeroinitializer, align 64

; CHECK-LABEL: define float @used_twice(
; CHECK: %p = select i1 %inside, ptr %a, ptr @__kiln_zeros.64
; CHECK: %m = select i1 %mask, float %x, float 0.000000e+00
; CHECK: %s = fadd float %m, %x
define float @used_twice(ptr %a, i1 %inside, i1 %mask) {
  %p = select i1 %inside, ptr %a, ptr @__kiln_zeros.64
  %x = load float, ptr %p
  %m = select i1 %mask, float %x, float 0.0
  %s = fadd float %m, %x
  ret float %s
}

; CHECK-LABEL: define float @unguarded(
; CHECK-NEXT: %x = load float, ptr %a
; CHECK-NEXT: %m = select i1 %mask, float %x, float 0.000000e+00
; CHECK-NEXT: ret float %m
define float @unguarded(ptr %a, i1 %mask) {
  %x = load float, ptr %a
  %m = select i1 %mask, float %x, float 0.0
  ret float %m
}

; CHECK-LABEL: define float @other_memory(
; CHECK-NEXT: %p = select i1 %inside, ptr %a, ptr @other
; CHECK-NEXT: %x = load float, ptr %p
; CHECK-NEXT: %m = select i1 %mask, float %x, float 0.000000e+00
; CHECK-NEXT: ret float %m
define float @other_memory(ptr %a, i1 %inside, i1 %mask) {
  %p = select i1 %inside, ptr %a, ptr @other
  %x = load float, ptr %p
  %m = select i1 %mask, float %x, float 0.0
  ret float %m
}

; The guard's pointer is stored, and must not change.
; CHECK-LABEL: define float @guard_used_twice(
; CHECK: %p = select i1 %inside, ptr %a, ptr @__kiln_zeros.64
; CHECK: %m = select i1 %mask, float %x, float 0.000000e+00
define float @guard_used_twice(ptr %a, ptr %out, i1 %inside, i1 %mask) {
  %p = select i1 %inside, ptr %a, ptr @__kiln_zeros.64
  %x = load float, ptr %p
  store ptr %p, ptr %out
  %m = select i1 %mask, float %x, float 0.0
  ret float %m
}

; CHECK-LABEL: define float @volatile(
; CHECK: %p = select i1 %inside, ptr %a, ptr @__kiln_zeros.64
; CHECK: %m = select i1 %mask, float %x, float 0.000000e+00
define float @volatile(ptr %a, i1 %inside, i1 %mask) {
  %p = select i1 %inside, ptr %a, ptr @__kiln_zeros.64
  %x = load volatile float, ptr %p
  %m = select i1 %mask, float %x, float 0.0
  ret float %m
}
