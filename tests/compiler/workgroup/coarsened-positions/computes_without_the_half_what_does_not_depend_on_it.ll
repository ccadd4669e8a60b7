; With 64 channels the position is x / 64, and x is a multiple of 64 but for the half offset, which changes none of
; these results: they are computed from the multiple alone, once for both halves.
; RUN: kiln-opt --passes=coarsened-positions %s | FileCheck %s

; CHECK-LABEL: @shifted(
; CHECK: %[[BASE:.+]] = and i32 %x, -64
; CHECK: %[[SAME:.+]] = or i32 %[[BASE]], 0
; CHECK: %[[POSITION:.+]] = lshr i32 %[[SAME]], 6
; CHECK: store i32 %[[POSITION]], ptr %out
define void @shifted(ptr %launch, ptr %record, i32 %half_offset, i32 %row, i32 %x, ptr %out) {
  %position = lshr i32 %x, 6
  store i32 %position, ptr %out
  ret void
}

; CHECK-LABEL: @divided(
; CHECK: %[[BASE:.+]] = and i32 %x, -64
; CHECK: %[[SAME:.+]] = or i32 %[[BASE]], 0
; CHECK: %[[POSITION:.+]] = udiv i32 %[[SAME]], 192
; CHECK: store i32 %[[POSITION]], ptr %out
define void @divided(ptr %launch, ptr %record, i32 %half_offset, i32 %row, i32 %x, ptr %out) {
  %position = udiv i32 %x, 192
  store i32 %position, ptr %out
  ret void
}

; CHECK-LABEL: @masked(
; CHECK: %[[BASE:.+]] = and i32 %x, -64
; CHECK: %[[SAME:.+]] = or i32 %[[BASE]], 0
; CHECK: %[[WIDE:.+]] = zext i32 %[[SAME]] to i64
; CHECK: %[[FIRST:.+]] = and i64 %[[WIDE]], -64
; CHECK: store i64 %[[FIRST]], ptr %out
define void @masked(ptr %launch, ptr %record, i32 %half_offset, i32 %row, i32 %x, ptr %out) {
  %wide = zext i32 %x to i64
  %first = and i64 %wide, -64
  store i64 %first, ptr %out
  ret void
}

; CHECK-LABEL: @moved_by_64(
; CHECK: %[[BASE:.+]] = and i32 %x, -64
; CHECK: %[[SAME:.+]] = or i32 %[[BASE]], 0
; CHECK: %[[LATER:.+]] = add i32 64, %[[SAME]]
; CHECK: %[[POSITION:.+]] = lshr i32 %[[LATER]], 6
; CHECK: store i32 %[[POSITION]], ptr %out
define void @moved_by_64(ptr %launch, ptr %record, i32 %half_offset, i32 %row, i32 %x, ptr %out) {
  %later = add i32 %x, 64
  %position = lshr i32 %later, 6
  store i32 %position, ptr %out
  ret void
}
