; Nothing rules out that these sums wrap, or that bits of the constant are set in the index, and a wrapped index is
; not at a constant distance: the addresses stay as they are.
; RUN: kiln-opt --passes=constant-offsets %s | FileCheck %s

; CHECK-LABEL: @may_wrap(
; CHECK: %sum = add i32 %x, 32
; CHECK-NEXT: %index = zext i32 %sum to i64
; CHECK-NEXT: %address = getelementptr float, ptr %data, i64 %index
; CHECK-NEXT: load float, ptr %address
define float @may_wrap(ptr %data, i32 %x) {
  %sum = add i32 %x, 32
  %index = zext i32 %sum to i64
  %address = getelementptr float, ptr %data, i64 %index
  %value = load float, ptr %address
  ret float %value
}

; A signed sum that does not overflow may still wrap as the unsigned number that is extended.
; CHECK-LABEL: @is_only_signed(
; CHECK: %address = getelementptr float, ptr %data, i64 %index
; CHECK-NEXT: load float, ptr %address
define float @is_only_signed(ptr %data, i32 %x) {
  %sum = add nsw i32 %x, 32
  %index = zext i32 %sum to i64
  %address = getelementptr float, ptr %data, i64 %index
  %value = load float, ptr %address
  ret float %value
}

; CHECK-LABEL: @bits_may_be_set(
; CHECK: %address = getelementptr float, ptr %data, i64 %index
; CHECK-NEXT: load float, ptr %address
define float @bits_may_be_set(ptr %data, i32 %x) {
  %sum = or i32 %x, 32
  %index = zext i32 %sum to i64
  %address = getelementptr float, ptr %data, i64 %index
  %value = load float, ptr %address
  ret float %value
}
