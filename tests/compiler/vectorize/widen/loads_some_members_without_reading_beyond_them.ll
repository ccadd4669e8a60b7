; Some members of each lane, of an argument without bounds checks: whole registers, of which the last one ends with the
; last lane's last member. Where that lane is off, the array may end before it.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s

declare i32 @__kiln_lane()
declare i32 @llvm.smin.i32(i32, i32)
@__kiln_zeros.64 = external global [64 x i8]

; The first three of four: 127 halves, whose last register is loaded from the 111th on and rotated by one.
; CHECK-LABEL: define void @first_three_of_four(
; CHECK-COUNT-7: load <16 x half>
; CHECK: [[FROM:%.+]] = getelementptr half, ptr {{.*}}, i64 111
; CHECK-NEXT: [[LAST:%.+]] = load <16 x half>, ptr [[FROM]]
; CHECK-NEXT: shufflevector <16 x half> [[LAST]], <16 x half> poison, <16 x i32> <i32 1, i32 2, {{.*}}, i32 15, i32 0>
; CHECK-NOT: load <
; CHECK: ret void
define void @first_three_of_four(ptr %x, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %i = zext i32 %lane to i64
  %n = shl i64 %i, 2
  %p0 = getelementptr half, ptr %x, i64 %n
  %p1 = getelementptr half, ptr %p0, i64 1
  %p2 = getelementptr half, ptr %p0, i64 2
  %a = load half, ptr %p0
  %b = load half, ptr %p1
  %c = load half, ptr %p2
  %ab = fadd half %a, %b
  %s = fadd half %ab, %c
  %to = getelementptr half, ptr %y, i64 %i
  store half %s, ptr %to
  ret void
}

; The first and the last: no register reaches beyond them.
; CHECK-LABEL: define void @first_and_last(
; CHECK-COUNT-7: load <16 x half>
; CHECK: [[FROM:%.+]] = getelementptr half, ptr {{.*}}, i64 112
; CHECK-NEXT: load <16 x half>, ptr [[FROM]]
; CHECK-NOT: load <
; CHECK: ret void
define void @first_and_last(ptr %x, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %i = zext i32 %lane to i64
  %n = shl i64 %i, 2
  %p0 = getelementptr half, ptr %x, i64 %n
  %p3 = getelementptr half, ptr %p0, i64 3
  %a = load half, ptr %p0
  %d = load half, ptr %p3
  %s = fadd half %a, %d
  %to = getelementptr half, ptr %y, i64 %i
  store half %s, ptr %to
  ret void
}

; The middle two: from the first lane's on.
; CHECK-LABEL: define void @middle_two(
; CHECK: [[FIRST:%.+]] = getelementptr i8, ptr %x, i64 2
; CHECK: getelementptr half, ptr {{.*}}, i64 0
; CHECK-COUNT-7: load <16 x half>
; CHECK: [[FROM:%.+]] = getelementptr half, ptr {{.*}}, i64 110
; CHECK-NEXT: load <16 x half>, ptr [[FROM]]
; CHECK-NOT: load <
; CHECK: ret void
define void @middle_two(ptr %x, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %i = zext i32 %lane to i64
  %n = shl i64 %i, 2
  %x1 = getelementptr i8, ptr %x, i64 2
  %p1 = getelementptr half, ptr %x1, i64 %n
  %p2 = getelementptr half, ptr %p1, i64 1
  %b = load half, ptr %p1
  %c = load half, ptr %p2
  %s = fadd half %b, %c
  %to = getelementptr half, ptr %y, i64 %i
  store half %s, ptr %to
  ret void
}

; Eight bytes a lane are one word of it, and all words are one part: its second half is rotated.
; CHECK-LABEL: define void @two_of_eight_bytes(
; CHECK: load <16 x i64>
; CHECK: [[FROM:%.+]] = getelementptr i8, ptr {{.*}}, i64 122
; CHECK-NEXT: [[HIGH:%.+]] = load <128 x i8>, ptr [[FROM]]
; CHECK-NEXT: shufflevector <128 x i8> [[HIGH]], <128 x i8> poison, <128 x i32> <i32 6,
; CHECK-NOT: load <
; CHECK: ret void
define void @two_of_eight_bytes(ptr %x, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %i = zext i32 %lane to i64
  %n = shl i64 %i, 3
  %p0 = getelementptr i8, ptr %x, i64 %n
  %p1 = getelementptr i8, ptr %p0, i64 1
  %a = load i8, ptr %p0
  %b = load i8, ptr %p1
  %s = add i8 %a, %b
  %to = getelementptr i8, ptr %y, i64 %i
  store i8 %s, ptr %to
  ret void
}

; A lane that is off may be beyond the array.
; CHECK-LABEL: define void @where_lanes_may_be_off(
; CHECK: [[BITS:%.+]] = bitcast <32 x i1> %{{.*}} to i32
; CHECK: [[ALL:%.+]] = icmp eq i32 %{{.*}}, -2147483647
; CHECK: br i1 %{{.*}}, label %row, label %lanes
; CHECK: row:
; CHECK-COUNT-8: load <16 x half>
; CHECK-NOT: load <
; CHECK: lanes:
; CHECK-NOT: load <16 x half>
; CHECK: ret void
define void @where_lanes_may_be_off(ptr %x, ptr %y, i32 %count) {
entry:
  %lane = call i32 @__kiln_lane()
  %i = zext i32 %lane to i64
  %is_in = icmp slt i32 %lane, %count
  br i1 %is_in, label %then, label %end

then:
  %n = shl i64 %i, 2
  %p0 = getelementptr half, ptr %x, i64 %n
  %p1 = getelementptr half, ptr %p0, i64 1
  %a = load half, ptr %p0
  %b = load half, ptr %p1
  %s = fadd half %a, %b
  %to = getelementptr half, ptr %y, i64 %i
  store half %s, ptr %to
  br label %end

end:
  ret void
}

; A bounds check covers what is beyond the last member, too.
; CHECK-LABEL: define void @checked(
; CHECK: row:
; CHECK-COUNT-7: load <16 x half>
; CHECK: [[FROM:%.+]] = getelementptr half, ptr {{.*}}, i64 112
; CHECK-NEXT: load <16 x half>, ptr [[FROM]]
; CHECK: lanes:
define void @checked(ptr %x, ptr %y, i64 %limit) {
  %lane = call i32 @__kiln_lane()
  %i = zext i32 %lane to i64
  %n = shl i64 %i, 3
  %n1 = add i64 %n, 2
  %p0 = getelementptr i8, ptr %x, i64 %n
  %p1 = getelementptr i8, ptr %x, i64 %n1
  %in0 = icmp ult i64 %n, %limit
  %in1 = icmp ult i64 %n1, %limit
  %from0 = select i1 %in0, ptr %p0, ptr @__kiln_zeros.64
  %from1 = select i1 %in1, ptr %p1, ptr @__kiln_zeros.64
  %a = load half, ptr %from0
  %b = load half, ptr %from1
  %s = fadd half %a, %b
  %to = getelementptr half, ptr %y, i64 %i
  store half %s, ptr %to
  ret void
}

; One of two, where no lane's index is beyond the limit: 63 words, the last part rotated.
; CHECK-LABEL: define void @one_of_two_up_to_a_limit(
; CHECK: row:
; CHECK: [[FROM:%.+]] = getelementptr i32, ptr {{.*}}, i64 59
; CHECK-NEXT: [[LAST:%.+]] = load <4 x i32>, ptr [[FROM]]
; CHECK-NEXT: shufflevector <4 x i32> [[LAST]], <4 x i32> poison, <4 x i32> <i32 1, i32 2, i32 3, i32 0>
; CHECK: lanes:
; CHECK-NOT: load <4 x i32>
; CHECK: ret void
define void @one_of_two_up_to_a_limit(ptr %x, ptr %y, i32 %limit) {
  %lane = call i32 @__kiln_lane()
  %i = zext i32 %lane to i64
  %index = call i32 @llvm.smin.i32(i32 %lane, i32 %limit)
  %wide = sext i32 %index to i64
  %at = getelementptr inbounds <2 x i32>, ptr %x, i64 %wide
  %v = load i32, ptr %at
  %to = getelementptr i32, ptr %y, i64 %i
  store i32 %v, ptr %to
  ret void
}
