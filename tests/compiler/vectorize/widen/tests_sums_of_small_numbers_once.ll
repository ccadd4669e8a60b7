; Accesses of a tile at constant distances have the same row and column, but for constants: these are tested once, and
; only if both are small, since they are added in 32 bits.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s

declare i32 @__kiln_lane()

@tile = internal global [64 x [20 x float]] zeroinitializer, section "kiln.threadgroup"

; CHECK-LABEL: define void @neighbours(
; CHECK: icmp ult <32 x i32> %{{.*}}, <i32 1048576,
; CHECK-COUNT-2: icmp eq <16 x i32>
; CHECK: br i1 %[[TEST:.*]], label %parts, label %lanes
; CHECK-NOT: icmp eq <16 x i32>
; CHECK: br i1 %[[TEST]], label %parts{{.*}}, label %lanes
; CHECK-NOT: icmp eq <16 x i32>
; CHECK: ret void
define void @neighbours(ptr %y, i32 %width) {
  %lane = call i32 @__kiln_lane()
  %row = udiv i32 %lane, %width
  %before = mul i32 %row, %width
  %column = sub i32 %lane, %before
  %r = zext i32 %row to i64
  %c = zext i32 %column to i64
  %above = getelementptr [64 x [20 x float]], ptr @tile, i64 0, i64 %r, i64 %c
  %a = load float, ptr %above
  %next.row = add i32 %row, 1
  %next.column = add i32 %column, 2
  %r1 = zext i32 %next.row to i64
  %c2 = zext i32 %next.column to i64
  %below = getelementptr [64 x [20 x float]], ptr @tile, i64 0, i64 %r1, i64 %c2
  %b = load float, ptr %below
  %s = fadd float %a, %b
  %to = getelementptr float, ptr %y, i32 %lane
  store float %s, ptr %to
  ret void
}
