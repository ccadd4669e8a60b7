; An argument's address that is known to be dereferenceable is that of a number or of shapes, which are constant: a
; load from it is the same whenever it happens.
; RUN: kiln-opt --passes=reference-loads %s | FileCheck %s

; CHECK-LABEL: define float @number(
; CHECK: load float, ptr %at, align 4, !invariant.load
define float @number(ptr %arguments) {
  %at = load ptr, ptr %arguments, !invariant.load !0, !dereferenceable !1
  %n = load float, ptr %at
  ret float %n
}

; CHECK-LABEL: define i32 @second_shape(
; CHECK: load i32, ptr %second, align 4, !invariant.load
define i32 @second_shape(ptr %arguments) {
  %at = load ptr, ptr %arguments, !invariant.load !0, !dereferenceable !1
  %second = getelementptr inbounds i8, ptr %at, i64 4
  %n = load i32, ptr %second
  ret i32 %n
}

!0 = !{}
!1 = !{i64 8}
