; Elements of an array may change while the kernel runs, and its address is not known to be dereferenceable. Nor is an
; address known that is loaded from memory that may change.
; RUN: kiln-opt --passes=reference-loads %s | FileCheck %s

; CHECK-LABEL: define float @array(
; CHECK: %n = load float, ptr %at, align 4{{$}}
define float @array(ptr %arguments) {
  %at = load ptr, ptr %arguments, !invariant.load !0
  %n = load float, ptr %at
  ret float %n
}

; CHECK-LABEL: define float @address_may_change(
; CHECK: %n = load float, ptr %at, align 4{{$}}
define float @address_may_change(ptr %arguments) {
  %at = load ptr, ptr %arguments, !dereferenceable !1
  %n = load float, ptr %at
  ret float %n
}

; CHECK-LABEL: define float @argument(
; CHECK: %n = load float, ptr %at, align 4{{$}}
define float @argument(ptr dereferenceable(4) %at) {
  %n = load float, ptr %at
  ret float %n
}

!0 = !{}
!1 = !{i64 8}
