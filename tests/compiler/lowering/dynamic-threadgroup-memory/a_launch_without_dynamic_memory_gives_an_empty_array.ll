; A launch may ask for none. The arrays are then empty: an access is outside of them, which bounds checks see, and
; defined arrays beside them keep their memory.
; RUN: kiln-opt --passes=dynamic-threadgroup-memory %s | FileCheck %s

; CHECK-DAG: @__kiln_dynamic_memory = internal global [0 x i8] undef, section "kiln.threadgroup", align 128
; CHECK-DAG: @tile = internal global [64 x float] undef, section "kiln.threadgroup"
@floats = external global [0 x float], section "kiln.threadgroup"
@tile = internal global [64 x float] undef, section "kiln.threadgroup"

; CHECK-LABEL: define float @body(
; CHECK-NEXT: store float 1.000000e+00, ptr @tile
; CHECK-NEXT: %r = load float, ptr @__kiln_dynamic_memory
define float @body() {
  store float 1.0, ptr @tile
  %r = load float, ptr @floats
  ret float %r
}
