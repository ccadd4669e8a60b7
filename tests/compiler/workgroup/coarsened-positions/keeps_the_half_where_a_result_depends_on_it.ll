; These results differ between the halves: one bit less is shifted out, the divisor is no multiple of 64, the mask
; keeps one bit more, or a sum with 32 carries into the next multiple in the second half.
; RUN: kiln-opt --passes=coarsened-positions %s | FileCheck %s

; CHECK-LABEL: @shifted_by_5(
; CHECK: %[[POSITION:.+]] = or disjoint i32
; CHECK: %number = lshr i32 %[[POSITION]], 5
; CHECK: store i32 %number, ptr %out
define void @shifted_by_5(ptr %launch, ptr %record, i32 %half_offset, i32 %row, i32 %x, ptr %out) {
  %number = lshr i32 %x, 5
  store i32 %number, ptr %out
  ret void
}

; CHECK-LABEL: @divided_by_96(
; CHECK: %[[POSITION:.+]] = or disjoint i32
; CHECK: %number = udiv i32 %[[POSITION]], 96
; CHECK: store i32 %number, ptr %out
define void @divided_by_96(ptr %launch, ptr %record, i32 %half_offset, i32 %row, i32 %x, ptr %out) {
  %number = udiv i32 %x, 96
  store i32 %number, ptr %out
  ret void
}

; CHECK-LABEL: @masked_to_32(
; CHECK: %[[POSITION:.+]] = or disjoint i32
; CHECK: %first = and i32 %[[POSITION]], -32
; CHECK: store i32 %first, ptr %out
define void @masked_to_32(ptr %launch, ptr %record, i32 %half_offset, i32 %row, i32 %x, ptr %out) {
  %first = and i32 %x, -32
  store i32 %first, ptr %out
  ret void
}

; CHECK-LABEL: @moved_by_32(
; CHECK: %[[POSITION:.+]] = or disjoint i32
; CHECK: %later = add i32 %[[POSITION]], 32
; CHECK: %number = lshr i32 %later, 6
; CHECK: store i32 %number, ptr %out
define void @moved_by_32(ptr %launch, ptr %record, i32 %half_offset, i32 %row, i32 %x, ptr %out) {
  %later = add i32 %x, 32
  %number = lshr i32 %later, 6
  store i32 %number, ptr %out
  ret void
}
