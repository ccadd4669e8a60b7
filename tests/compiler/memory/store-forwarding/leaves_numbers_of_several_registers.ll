; Slices of vectors may have become shifts of one number that takes several registers. Such a number is not put together
; from registers that were stored.
; RUN: kiln-opt --passes=store-forwarding --cpu=x86-64-v3 %s | FileCheck %s
; RUN: kiln-opt --passes=store-forwarding --cpu=x86-64-v4 %s | FileCheck %s

; CHECK-LABEL: @number(
; CHECK: load i1024
define i1024 @number(ptr %launch, ptr %record, <8 x float> %one, <8 x float> %two) {
  %memory.at = getelementptr i8, ptr %record, i64 104
  %memory = load ptr, ptr %memory.at, !invariant.load !0
  store <8 x float> %one, ptr %memory, align 4
  %second = getelementptr i8, ptr %memory, i64 32
  store <8 x float> %two, ptr %second, align 4
  %value = load i1024, ptr %memory, align 4
  ret i1024 %value
}

!0 = !{}
