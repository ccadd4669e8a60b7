; Threadgroups 16 threads wide: a row's threads read one element of a tile, which is a scalar for each half of the
; simdgroup, or all read the same row of a table, which is loaded once. Nothing beyond their elements is read, so no
; check fails at the array's end.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s

@tile = internal global [16 x [16 x float]] zeroinitializer, section "kiln.threadgroup"

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @one_of_a_row(
; CHECK: [[FIRST:%.+]] = load float, ptr
; CHECK: insertelement <16 x float> poison, float [[FIRST]]
; CHECK: [[SECOND:%.+]] = load float, ptr
; CHECK: insertelement <16 x float> poison, float [[SECOND]]
; CHECK-NOT: gather
; CHECK: ret void
define void @one_of_a_row(ptr %y, i32 %group, i32 %k) {
  %lane = call i32 @__kiln_lane()
  %in_group = lshr i32 %lane, 4
  %first = and i32 %group, 14
  %row = or disjoint i32 %first, %in_group
  %row64 = zext i32 %row to i64
  %column = and i32 %k, 15
  %column64 = zext i32 %column to i64
  %from = getelementptr [16 x [16 x float]], ptr @tile, i64 0, i64 %row64, i64 %column64
  %v = load float, ptr %from
  %to = getelementptr float, ptr %y, i32 %lane
  store float %v, ptr %to
  ret void
}

; CHECK-LABEL: define void @the_same_row(
; CHECK: [[ROW:%.+]] = load <16 x float>, ptr
; CHECK-NOT: load <
; CHECK: shufflevector <16 x float> [[ROW]], <16 x float> [[ROW]]
; CHECK-NOT: gather
; CHECK: ret void
define void @the_same_row(ptr %y, i32 %k) {
  %lane = call i32 @__kiln_lane()
  %column = and i32 %lane, 15
  %column64 = zext i32 %column to i64
  %row = and i32 %k, 15
  %row64 = zext i32 %row to i64
  %from = getelementptr [16 x [16 x float]], ptr @tile, i64 0, i64 %row64, i64 %column64
  %v = load float, ptr %from
  %to = getelementptr float, ptr %y, i32 %lane
  store float %v, ptr %to
  ret void
}

; A loop from -2 to 2 around the thread's row: the sum cannot be negative, so it is not tested that it does not wrap.
; CHECK-LABEL: define void @rows_around(
; CHECK: {{^}}loop:
; CHECK-NOT: gather
; CHECK-NOT: br i1 %{{.*}}, label %row
; CHECK: load <32 x float>, ptr
; CHECK-NOT: br i1 %{{.*}}, label %row
; CHECK: ret void
define void @rows_around(ptr %y, i32 %group) {
entry:
  %lane = call i32 @__kiln_lane()
  %in_group = lshr i32 %lane, 4
  %first = and i32 %group, 6
  %own = or disjoint i32 %first, %in_group
  %column = and i32 %lane, 15
  %column64 = zext i32 %column to i64
  br label %loop
loop:
  %k = phi i32 [ -2, %entry ], [ %next, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %more, %loop ]
  %middle = add i32 %own, 2
  %row = add i32 %middle, %k
  %row64 = sext i32 %row to i64
  %from = getelementptr [16 x [16 x float]], ptr @tile, i64 0, i64 %row64, i64 %column64
  %v = load float, ptr %from
  %more = fadd float %sum, %v
  %next = add i32 %k, 1
  %is_last = icmp eq i32 %next, 3
  br i1 %is_last, label %end, label %loop
end:
  %to = getelementptr float, ptr %y, i32 %lane
  store float %more, ptr %to
  ret void
}
