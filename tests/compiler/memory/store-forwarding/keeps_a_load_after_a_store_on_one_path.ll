; Where two paths join, the stored value is known if neither wrote to threadgroup memory, and not if one of them did.
; RUN: kiln-opt --passes=store-forwarding %s | FileCheck %s
; RUN: kiln-opt --passes=store-forwarding --remarks %s 2>&1 | FileCheck %s --check-prefix=REMARK

; REMARK: remark: store-forwarding: this load of threadgroup memory stays: several paths, or many stores, lead to it
; REMARK-NOT: remark:

; CHECK-LABEL: @neither(
; CHECK-NOT: load float
; CHECK: ret float %one
define float @neither(ptr %launch, ptr %record, float %one, i1 %condition) {
  %out = load ptr, ptr %launch, !invariant.load !0
  %memory.at = getelementptr i8, ptr %record, i64 104
  %memory = load ptr, ptr %memory.at, !invariant.load !0
  store float %one, ptr %memory, align 4
  br i1 %condition, label %side, label %join
side:
  store float 2.0, ptr %out, align 4
  br label %join
join:
  %value = load float, ptr %memory, align 4
  ret float %value
}

; CHECK-LABEL: @one_of_both(
; CHECK: store float %one
; CHECK: store float 2.000000e+00
; CHECK: %value = load float
; CHECK: ret float %value
define float @one_of_both(ptr %launch, ptr %record, float %one, i1 %condition) {
  %memory.at = getelementptr i8, ptr %record, i64 104
  %memory = load ptr, ptr %memory.at, !invariant.load !0
  store float %one, ptr %memory, align 4
  br i1 %condition, label %side, label %join
side:
  store float 2.0, ptr %memory, align 4
  br label %join
join:
  %value = load float, ptr %memory, align 4
  ret float %value
}

!0 = !{}
