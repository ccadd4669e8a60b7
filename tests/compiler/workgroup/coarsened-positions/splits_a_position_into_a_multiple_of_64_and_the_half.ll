; A simdgroup's position, a multiple of 32, becomes a multiple of 64 and the half offset, 0 or 32. What depends on the
; half goes on with their sum.
; RUN: kiln-opt --passes=coarsened-positions %s | FileCheck %s

; CHECK-LABEL: @position(
; CHECK: %[[BASE:.+]] = and i32 %x, -64
; CHECK: %[[CALL:.+]] = call i32 @__kiln_piece()
; CHECK: %[[HALF:.+]] = and i32 %[[CALL]], 32
; CHECK: %[[POSITION:.+]] = or disjoint i32 %[[BASE]], %[[HALF]]
; CHECK: store i32 %[[POSITION]], ptr %out
; CHECK: %simdgroup = lshr i32 %[[POSITION]], 5
; CHECK: %lane = and i32 %[[POSITION]], 63
define void @position(ptr %launch, ptr %record, i32 %half_offset, i32 %row, i32 %x, ptr %out) {
  store i32 %x, ptr %out
  %simdgroup = lshr i32 %x, 5
  store i32 %simdgroup, ptr %out
  %lane = and i32 %x, 63
  store i32 %lane, ptr %out
  ret void
}
