; Threadgroups 16 threads wide: each half of a simdgroup is a row of a tile. Two divergent indices that cannot wrap add
; up; the row is stored as two strips, under the mask's halves where not all lanes are active.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s

@tile = internal global [18 x [18 x float]] zeroinitializer, section "kiln.threadgroup"

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @rows(
; CHECK: store <16 x float> %{{.*}}, ptr %{{.*}}, align 4
; CHECK: store <16 x float> %{{.*}}, ptr %{{.*}}, align 4
; CHECK-NOT: scatter
; CHECK: ret void
define void @rows(ptr %x, i32 %group) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %x, i32 %lane
  %v = load float, ptr %from
  %column = and i32 %lane, 15
  %in_group = lshr i32 %lane, 4
  %first = and i32 %group, 14
  %row = or disjoint i32 %first, %in_group
  %row64 = zext i32 %row to i64
  %column64 = zext i32 %column to i64
  %to = getelementptr [18 x [18 x float]], ptr @tile, i64 0, i64 %row64, i64 %column64
  store float %v, ptr %to
  ret void
}

; The first column: two lanes that are known, one after the other.
; CHECK-LABEL: define void @border(
; CHECK: store float
; CHECK: store float
; CHECK-NOT: scatter
; CHECK: ret void
define void @border(ptr %x, i32 %group) {
  %lane = call i32 @__kiln_lane()
  %column = and i32 %lane, 15
  %is_first = icmp eq i32 %column, 0
  br i1 %is_first, label %then, label %end
then:
  %in_group = lshr i32 %lane, 4
  %first = and i32 %group, 14
  %row = or disjoint i32 %first, %in_group
  %row64 = zext i32 %row to i64
  %from = getelementptr float, ptr %x, i64 %row64
  %v = load float, ptr %from
  %to = getelementptr [18 x [18 x float]], ptr @tile, i64 0, i64 %row64, i64 17
  store float %v, ptr %to
  br label %end
end:
  ret void
}
