; A step of a scan reads one element beside the register that was just stored, so parts of two registers. The load
; becomes a shuffle of both, and as nothing is loaded any more, the stores go, too: the memory's contents are lost
; when the threadgroup ends.
; RUN: kiln-opt --passes=store-forwarding %s | FileCheck %s

; CHECK-LABEL: @scan_step(
; CHECK-NOT: store
; CHECK: %[[BEFORE:.+]] = shufflevector <8 x float> %one, <8 x float> %two, <8 x i32> <i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14>
; CHECK-NEXT: ret <8 x float> %[[BEFORE]]
define <8 x float> @scan_step(ptr %launch, ptr %record, <8 x float> %one, <8 x float> %two) {
  %memory.at = getelementptr i8, ptr %record, i64 104
  %memory = load ptr, ptr %memory.at, !invariant.load !0
  store <8 x float> %one, ptr %memory, align 4
  %second = getelementptr i8, ptr %memory, i64 32
  store <8 x float> %two, ptr %second, align 4
  %beside = getelementptr i8, ptr %memory, i64 28
  %before = load <8 x float>, ptr %beside, align 4
  ret <8 x float> %before
}

; The last store to an element counts.
; CHECK-LABEL: @overwritten(
; CHECK-NOT: load float
; CHECK: ret float %new
define float @overwritten(ptr %launch, ptr %record, <8 x float> %old, float %new) {
  %memory.at = getelementptr i8, ptr %record, i64 104
  %memory = load ptr, ptr %memory.at, !invariant.load !0
  store <8 x float> %old, ptr %memory, align 4
  %third = getelementptr i8, ptr %memory, i64 8
  store float %new, ptr %third, align 4
  %value = load float, ptr %third, align 4
  ret float %value
}

!0 = !{}
