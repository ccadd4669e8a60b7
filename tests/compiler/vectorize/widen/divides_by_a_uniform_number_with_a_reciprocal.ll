; A uniform divisor becomes a factor once, in scalars, and each vector is multiplied and shifted. A divisor that differs
; between lanes divides floating-point numbers that hold the integers. Numbers of 64 bits, and constants, stay divisions.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @uniform(
; CHECK-NOT: udiv <
; CHECK: %[[D:.*]] = call i32 @llvm.umax.i32(i32 %{{.*}}, i32 1)
; CHECK: udiv i64
; CHECK-NOT: udiv
; CHECK-COUNT-2: mul <16 x i64>
; CHECK: lshr <32 x i32>
; CHECK: store <32 x i32>
define void @uniform(ptr %x, ptr %y, i32 %d) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr i32, ptr %x, i32 %lane
  %n = load i32, ptr %from
  %q = udiv i32 %n, %d
  %to = getelementptr i32, ptr %y, i32 %lane
  store i32 %q, ptr %to
  ret void
}

; The guard against the smallest number divided by -1 differs between lanes, and is not needed here.
; CHECK-LABEL: define void @guarded(
; CHECK-NOT: sdiv
; CHECK-NOT: fdiv
; CHECK: udiv i64
; CHECK: store <32 x i32>
define void @guarded(ptr %x, ptr %y, i32 %d) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr i32, ptr %x, i32 %lane
  %n = load i32, ptr %from
  %zero = icmp eq i32 %d, 0
  %minus = icmp eq i32 %d, -1
  %least = icmp eq i32 %n, -2147483648
  %overflow = and i1 %least, %minus
  %bad = or i1 %zero, %overflow
  %safe = select i1 %bad, i32 1, i32 %d
  %q = sdiv i32 %n, %safe
  %to = getelementptr i32, ptr %y, i32 %lane
  store i32 %q, ptr %to
  ret void
}

; A choice of the kernel's own is none of these guards.
; CHECK-LABEL: define void @chosen(
; CHECK: select <32 x i1>
; CHECK: fdiv <32 x double>
; CHECK: fptosi <32 x double> %{{.*}} to <32 x i32>
define void @chosen(ptr %x, ptr %y, i32 %d) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr i32, ptr %x, i32 %lane
  %n = load i32, ptr %from
  %even = icmp slt i32 %n, 0
  %safe = select i1 %even, i32 1, i32 %d
  %q = sdiv i32 %n, %safe
  %to = getelementptr i32, ptr %y, i32 %lane
  store i32 %q, ptr %to
  ret void
}

; CHECK-LABEL: define void @narrow(
; CHECK: fdiv <32 x float>
; CHECK: fptoui <32 x float> %{{.*}} to <32 x i16>
; CHECK: mul <32 x i16>
; CHECK: sub <32 x i16>
define void @narrow(ptr %x, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr i16, ptr %x, i32 %lane
  %n = load i16, ptr %from
  %q = urem i16 1000, %n
  %to = getelementptr i16, ptr %y, i32 %lane
  store i16 %q, ptr %to
  ret void
}

; CHECK-LABEL: define void @long(
; CHECK: udiv <32 x i64>
define void @long(ptr %x, ptr %y, i64 %d) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr i64, ptr %x, i32 %lane
  %n = load i64, ptr %from
  %q = udiv i64 %n, %d
  %to = getelementptr i64, ptr %y, i32 %lane
  store i64 %q, ptr %to
  ret void
}

; CHECK-LABEL: define void @constant(
; CHECK: sdiv <32 x i32> %{{.*}}, <i32 7,
define void @constant(ptr %x, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr i32, ptr %x, i32 %lane
  %n = load i32, ptr %from
  %q = sdiv i32 %n, 7
  %to = getelementptr i32, ptr %y, i32 %lane
  store i32 %q, ptr %to
  ret void
}
