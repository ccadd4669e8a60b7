; A tile's stores are tested one by one where the tile cannot be stored as a whole. What is tested there does not dominate
; the next tile, whose stores are tested again. kiln-opt verifies what it writes.
; RUN: kiln-opt --passes=widen --cpu=x86-64-v4 %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @tiles(
; CHECK: parts:
; CHECK: parts{{[0-9]+}}:
; CHECK: ret void
define void @tiles(ptr %c, i64 %pitch, float %f, i32 %lanes) {
entry:
  %lane = call i32 @__kiln_lane()
  %row = lshr i32 %lane, 3
  %col = and i32 %lane, 7
  %roww = zext i32 %row to i64
  %colw = zext i32 %col to i64
  %r = mul i64 %roww, %pitch
  %v = sitofp i32 %lane to float
  %p = getelementptr float, ptr %c, i64 %r
  %at = getelementptr float, ptr %p, i64 %colw
  %at1 = getelementptr i8, ptr %at, i64 4096000
  store float %v, ptr %at
  %v2 = fadd float %v, 1.0
  store float %v2, ptr %at1
  ret void
}
