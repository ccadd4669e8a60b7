; A store to a launch's argument does not change threadgroup memory; one to a pointer of unknown origin may.
; RUN: kiln-opt --passes=store-forwarding %s | FileCheck %s
; RUN: kiln-opt --passes=store-forwarding --remarks %s 2>&1 | FileCheck %s --check-prefix=REMARK

; REMARK: remark: store-forwarding: this load of threadgroup memory stays: where a store before it writes is not known
; REMARK-NOT: remark:

; CHECK-LABEL: @to_an_output(
; CHECK: store float 1.000000e+00, ptr %out
; CHECK-NOT: load float
; CHECK: ret float %one
define float @to_an_output(ptr %launch, ptr %record, float %one) {
  %out = load ptr, ptr %launch, !invariant.load !0
  %memory.at = getelementptr i8, ptr %record, i64 104
  %memory = load ptr, ptr %memory.at, !invariant.load !0
  store float %one, ptr %memory, align 4
  store float 1.0, ptr %out, align 4
  %value = load float, ptr %memory, align 4
  ret float %value
}

; CHECK-LABEL: @to_an_unknown_place(
; CHECK: store float %one, ptr %memory
; CHECK: store float 1.000000e+00, ptr %out
; CHECK: %value = load float, ptr %memory
; CHECK: ret float %value
define float @to_an_unknown_place(ptr %launch, ptr %record, float %one) {
  %out = load ptr, ptr %launch
  %memory.at = getelementptr i8, ptr %record, i64 104
  %memory = load ptr, ptr %memory.at, !invariant.load !0
  store float %one, ptr %memory, align 4
  store float 1.0, ptr %out, align 4
  %value = load float, ptr %memory, align 4
  ret float %value
}

!0 = !{}
