; Only a plain load at a constant offset inside the object counts: an index that is computed may lead anywhere, and a
; volatile or atomic load is made each time.
; RUN: kiln-opt --passes=reference-loads %s | FileCheck %s

; CHECK-LABEL: define float @computed_index(
; CHECK: %n = load float, ptr %element, align 4{{$}}
define float @computed_index(ptr %arguments, i32 %i) {
  %at = load ptr, ptr %arguments, !invariant.load !0, !dereferenceable !1
  %element = getelementptr inbounds float, ptr %at, i32 %i
  %n = load float, ptr %element
  ret float %n
}

; CHECK-LABEL: define float @not_inbounds(
; CHECK: %n = load float, ptr %element, align 4{{$}}
define float @not_inbounds(ptr %arguments) {
  %at = load ptr, ptr %arguments, !invariant.load !0, !dereferenceable !1
  %element = getelementptr i8, ptr %at, i64 8
  %n = load float, ptr %element
  ret float %n
}

; CHECK-LABEL: define float @volatile(
; CHECK: %n = load volatile float, ptr %at, align 4{{$}}
define float @volatile(ptr %arguments) {
  %at = load ptr, ptr %arguments, !invariant.load !0, !dereferenceable !1
  %n = load volatile float, ptr %at
  ret float %n
}

; CHECK-LABEL: define i32 @atomic(
; CHECK: %n = load atomic i32, ptr %at monotonic, align 4{{$}}
define i32 @atomic(ptr %arguments) {
  %at = load ptr, ptr %arguments, !invariant.load !0, !dereferenceable !1
  %n = load atomic i32, ptr %at monotonic, align 4
  ret i32 %n
}

!0 = !{}
!1 = !{i64 8}
