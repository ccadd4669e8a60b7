; Constant masks go like computed ones. What computed a mask stays, though it has no further use: LLVM's passes remove it.
; RUN: kiln-opt --passes=remove-warp-masks %s | FileCheck %s
; RUN: kiln-opt --passes=remove-warp-masks,adce %s | FileCheck %s --check-prefix=ADCE

declare void @__kiln_mask(i32) convergent

; CHECK-LABEL: define i32 @computed(
; CHECK-NEXT: %shifted = shl i32 255, %tile
; CHECK-NEXT: ret i32 %tile
; ADCE-LABEL: define i32 @computed(
; ADCE-NEXT: ret i32 %tile
define i32 @computed(i32 %tile) {
  call void @__kiln_mask(i32 -1) convergent
  %shifted = shl i32 255, %tile
  call void @__kiln_mask(i32 %shifted) convergent
  ret i32 %tile
}
