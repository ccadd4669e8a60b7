; Consecutive numbers that do not wrap, divided by a constant: the first one is divided, and the others are less than a
; few divisors further on.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @columns(
; CHECK: [[ROW:%.+]] = udiv i32 %{{.+}}, 720
; CHECK: [[COLUMNS:%.+]] = mul i32 [[ROW]], 720
; CHECK: [[COLUMN:%.+]] = sub i32 %{{.+}}, [[COLUMNS]]
; CHECK: [[PLACES:%.+]] = add <32 x i32> %{{.+}}, <i32 0, i32 1
; CHECK: [[BEFORE:%.+]] = sub <32 x i32> [[PLACES]], <i32 720,
; CHECK: call <32 x i32> @llvm.umin.v32i32(<32 x i32> [[PLACES]], <32 x i32> [[BEFORE]])
; CHECK: icmp uge <32 x i32> %{{.+}}, <i32 720,
; CHECK-NOT: udiv <32 x i32>
; CHECK-NOT: urem <32 x i32>
; CHECK: ret void
define void @columns(ptr %y, i32 %group) {
  %lane = call i32 @__kiln_lane()
  %few = and i32 %group, 1048544
  %i = or disjoint i32 %few, %lane
  %x = urem i32 %i, 720
  %row = udiv i32 %i, 720
  %sum = xor i32 %x, %row
  %at = zext i32 %lane to i64
  %to = getelementptr i32, ptr %y, i64 %at
  store i32 %sum, ptr %to
  ret void
}

; Three pieces, and many.
; CHECK-LABEL: define void @tile_and_channels(
; CHECK: icmp uge <32 x i32> %{{.+}}, <i32 20,
; CHECK: icmp uge <32 x i32> %{{.+}}, <i32 40,
; CHECK: [[PLACES:%.+]] = add <32 x i32> %{{.+}}, <i32 0, i32 1
; CHECK: [[PRODUCTS:%.+]] = mul <32 x i32> [[PLACES]], <i32 13108,
; CHECK: [[MORE:%.+]] = lshr <32 x i32> [[PRODUCTS]], <i32 16,
; CHECK: mul <32 x i32> [[MORE]], <i32 5,
; CHECK: ret void
define void @tile_and_channels(ptr %y, i32 %group) {
  %lane = call i32 @__kiln_lane()
  %few = and i32 %group, 1048544
  %i = or disjoint i32 %few, %lane
  %row = udiv i32 %i, 20
  %channel = urem i32 %i, 5
  %sum = xor i32 %channel, %row
  %at = zext i32 %lane to i64
  %to = getelementptr i32, ptr %y, i64 %at
  store i32 %sum, ptr %to
  ret void
}

; A sum that may wrap between two lanes, and numbers that are not consecutive.
; CHECK-LABEL: define void @others(
; CHECK: udiv <32 x i32> %{{.+}}, <i32 20,
; CHECK: udiv <32 x i32> %{{.+}}, <i32 20,
; CHECK: ret void
define void @others(ptr %y, i32 %first) {
  %lane = call i32 @__kiln_lane()
  %i = add i32 %first, %lane
  %row = udiv i32 %i, 20
  %three = mul i32 %i, 3
  %other = udiv i32 %three, 20
  %sum = xor i32 %row, %other
  %at = zext i32 %lane to i64
  %to = getelementptr i32, ptr %y, i64 %at
  store i32 %sum, ptr %to
  ret void
}
