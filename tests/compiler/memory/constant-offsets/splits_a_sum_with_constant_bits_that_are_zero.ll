; A kernel's index is a 32-bit sum that is extended to the width of an address. Where the constant's bits are zero in
; the index, as `or disjoint` says, or where the sum is flagged not to wrap, the access is at a constant distance, in
; bytes, from that at the index alone.
; RUN: kiln-opt --passes=constant-offsets %s | FileCheck %s

; CHECK-LABEL: @disjoint_bits(
; CHECK: %[[INDEX:.+]] = zext i32 %x to i64
; CHECK: %[[BASE:.+]] = getelementptr float, ptr %data, i64 %[[INDEX]]
; CHECK: %[[ADDRESS:.+]] = getelementptr i8, ptr %[[BASE]], i64 128
; CHECK: load float, ptr %[[ADDRESS]]
define float @disjoint_bits(ptr %data, i32 %x) {
  %sum = or disjoint i32 %x, 32
  %index = zext i32 %sum to i64
  %address = getelementptr float, ptr %data, i64 %index
  %value = load float, ptr %address
  ret float %value
}

; CHECK-LABEL: @flagged_sum(
; CHECK: %[[INDEX:.+]] = zext i32 %x to i64
; CHECK: %[[BASE:.+]] = getelementptr i16, ptr %data, i64 %[[INDEX]]
; CHECK: %[[ADDRESS:.+]] = getelementptr i8, ptr %[[BASE]], i64 10
; CHECK: store i16 1, ptr %[[ADDRESS]]
define void @flagged_sum(ptr %data, i32 %x) {
  %sum = add nuw i32 %x, 5
  %index = zext i32 %sum to i64
  %address = getelementptr i16, ptr %data, i64 %index
  store i16 1, ptr %address
  ret void
}
