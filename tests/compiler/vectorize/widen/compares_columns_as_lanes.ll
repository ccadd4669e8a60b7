; Consecutive numbers that are compared with a uniform one: without mask registers, the lanes between the first and the
; last one below it, in bytes. The numbers may wrap.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s --check-prefix=MASKS

declare i32 @__kiln_lane()
declare i32 @llvm.smax.i32(i32, i32)

; MASKS-NOT: icmp {{.*}}<32 x i8>

; The column before, which is 2^32 - 1 at the border.
; CHECK-LABEL: define void @before(
; CHECK: [[BEFORE:%.+]] = add i32 %{{.+}}, -1
; CHECK: [[ROOM:%.+]] = call i32 @llvm.usub.sat.i32(i32 200, i32 [[BEFORE]])
; CHECK: [[BELOW:%.+]] = call i32 @llvm.umin.i32(i32 [[ROOM]], i32 32)
; CHECK: [[IS_BELOW:%.+]] = icmp ult i32 [[BEFORE]], 200
; CHECK: [[TO_ZERO:%.+]] = sub i32 0, [[BEFORE]]
; CHECK: [[LANES:%.+]] = call i32 @llvm.umin.i32(i32 [[TO_ZERO]], i32 32)
; CHECK: [[FROM:%.+]] = select i1 [[IS_BELOW]], i32 0, i32 [[LANES]]
; CHECK: [[END:%.+]] = add i32 [[FROM]], 200
; CHECK: [[END_OF_ALL:%.+]] = call i32 @llvm.umin.i32(i32 [[END]], i32 32)
; CHECK: [[TO:%.+]] = select i1 [[IS_BELOW]], i32 [[BELOW]], i32 [[END_OF_ALL]]
; CHECK: trunc i32 [[TO]] to i8
; CHECK: icmp slt <32 x i8> <i8 0, i8 1
; CHECK: trunc i32 [[FROM]] to i8
; CHECK: icmp sge <32 x i8> <i8 0, i8 1
; CHECK: and <32 x i1>
define void @before(ptr %y, i32 %first) {
  %lane = call i32 @__kiln_lane()
  %base = and i32 %first, -32
  %x = or disjoint i32 %base, %lane
  %column = add i32 %x, -1
  %is.inside = icmp ult i32 %column, 200
  %v = select i1 %is.inside, i8 1, i8 2
  %at = zext i32 %lane to i64
  %to = getelementptr i8, ptr %y, i64 %at
  store i8 %v, ptr %to
  ret void
}

; With a sign: not below 8.
; CHECK-LABEL: define void @from_the_eighth_on(
; CHECK: xor i32 %{{.+}}, -2147483648
; CHECK: call i32 @llvm.usub.sat.i32(i32 -2147483640, i32 %{{.+}})
; CHECK: icmp slt <32 x i8>
; CHECK: icmp sge <32 x i8>
; CHECK: xor <32 x i1> %{{.+}}, <i1 true,
define void @from_the_eighth_on(ptr %y, i32 %first) {
  %lane = call i32 @__kiln_lane()
  %x = add i32 %first, %lane
  %is.inside = icmp sgt i32 %x, 7
  %v = select i1 %is.inside, i8 1, i8 2
  %at = zext i32 %lane to i64
  %to = getelementptr i8, ptr %y, i64 %at
  store i8 %v, ptr %to
  ret void
}

; A limit that any number may reach, extended numbers, of which one wraps in known lanes, and a piece: as vectors.
; CHECK-LABEL: define void @others(
; CHECK-NOT: icmp {{.*}}<32 x i8>
; CHECK: icmp ult <32 x i32>
; CHECK: icmp ult <32 x i32>
; CHECK: icmp ult <32 x i32>
; CHECK: icmp ult <32 x i32>
; CHECK: ret void
define void @others(ptr %y, i32 %first, i32 %limit, i16 %narrow) {
  %lane = call i32 @__kiln_lane()
  %x = add i32 %first, %lane
  %below.any = icmp ult i32 %x, %limit
  %lane16 = trunc i32 %lane to i16
  %sum = add i16 %narrow, %lane16
  %extended = zext i16 %sum to i32
  %below.100 = icmp ult i32 %extended, 100
  %lane8 = trunc i32 %lane to i8
  %less = add i8 %lane8, -6
  %wrapped = zext i8 %less to i32
  %later = add i32 %wrapped, %first
  %below.90 = icmp ult i32 %later, 90
  %clamped = call i32 @llvm.smax.i32(i32 %x, i32 5)
  %below.30 = icmp ult i32 %clamped, 30
  %a = select i1 %below.any, i8 1, i8 2
  %b = select i1 %below.100, i8 %a, i8 3
  %d = select i1 %below.90, i8 %b, i8 5
  %c = select i1 %below.30, i8 %d, i8 4
  %at = zext i32 %lane to i64
  %to = getelementptr i8, ptr %y, i64 %at
  store i8 %c, ptr %to
  ret void
}
