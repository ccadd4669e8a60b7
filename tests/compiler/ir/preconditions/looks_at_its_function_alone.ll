; Another function of the module may be in another state: the one of a combining function, or an engine's that comes
; later. Of calls only those of the pseudo-intrinsic's exact name count.
; RUN: kiln-opt --passes=components --function=scalars %s | FileCheck %s
; RUN: not kiln-opt --passes=components %s 2>&1 | FileCheck %s --check-prefix=BOTH

declare void @__kiln_mask(i32) convergent
declare void @__kiln_mask_of_bits(i32)

; BOTH: the pass components takes for granted that no masks of collectives are left

; CHECK-LABEL: define i32 @scalars(
; CHECK-NEXT: call void @__kiln_mask_of_bits(i32 %x)
; CHECK-NEXT: ret i32 %x
define i32 @scalars(i32 %x) {
  call void @__kiln_mask_of_bits(i32 %x)
  ret i32 %x
}

define void @masked(i32 %x) {
  call void @__kiln_mask(i32 %x) convergent
  ret void
}
