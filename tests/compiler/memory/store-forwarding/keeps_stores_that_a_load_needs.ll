; One load's value is known and is forwarded. Another loads an element that was never stored, at an index that is not
; known, or behind a store of unknown index: it stays, and so does each store.
; RUN: kiln-opt --passes=store-forwarding %s | FileCheck %s
; RUN: kiln-opt --passes=store-forwarding --remarks %s 2>&1 | FileCheck %s --check-prefix=REMARK

; REMARK: remark: store-forwarding: this load of threadgroup memory stays: no store to it is known
; REMARK-NEXT: remark: store-forwarding: this load of threadgroup memory stays: its index is not known
; REMARK-NEXT: remark: store-forwarding: this load of threadgroup memory stays: where a store before it writes is not known
; REMARK-NOT: remark:

; CHECK-LABEL: @not_stored(
; CHECK: store <8 x float> %one
; CHECK: %[[FIFTH:.+]] = extractelement <8 x float> %one, i64 4
; CHECK: %ninth = load float, ptr %ninth.at
; CHECK: fadd float %[[FIFTH]], %ninth
define float @not_stored(ptr %launch, ptr %record, <8 x float> %one) {
  %memory.at = getelementptr i8, ptr %record, i64 104
  %memory = load ptr, ptr %memory.at, !invariant.load !0
  store <8 x float> %one, ptr %memory, align 4
  %fifth.at = getelementptr i8, ptr %memory, i64 16
  %fifth = load float, ptr %fifth.at, align 4
  %ninth.at = getelementptr i8, ptr %memory, i64 32
  %ninth = load float, ptr %ninth.at, align 4
  %sum = fadd float %fifth, %ninth
  ret float %sum
}

; CHECK-LABEL: @unknown_index(
; CHECK: store <8 x float> %one
; CHECK: %value = load float, ptr %at
; CHECK: ret float %value
define float @unknown_index(ptr %launch, ptr %record, <8 x float> %one, i64 %index) {
  %memory.at = getelementptr i8, ptr %record, i64 104
  %memory = load ptr, ptr %memory.at, !invariant.load !0
  store <8 x float> %one, ptr %memory, align 4
  %at = getelementptr float, ptr %memory, i64 %index
  %value = load float, ptr %at, align 4
  ret float %value
}

; CHECK-LABEL: @behind_an_unknown_store(
; CHECK: store <8 x float> %one
; CHECK: store float 1.000000e+00, ptr %at
; CHECK: %value = load float, ptr %memory
; CHECK: ret float %value
define float @behind_an_unknown_store(ptr %launch, ptr %record, <8 x float> %one, i64 %index) {
  %memory.at = getelementptr i8, ptr %record, i64 104
  %memory = load ptr, ptr %memory.at, !invariant.load !0
  store <8 x float> %one, ptr %memory, align 4
  %at = getelementptr float, ptr %memory, i64 %index
  store float 1.0, ptr %at, align 4
  %value = load float, ptr %memory, align 4
  ret float %value
}

!0 = !{}
