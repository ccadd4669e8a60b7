; Windows are asked for in threadgroup memory alone, and for words. Device memory has other threads' elements between, and
; bodies of many piecewise accesses would take longer to compile.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s --implicit-check-not=windows: --implicit-check-not=butterfly:
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s --implicit-check-not=windows: --implicit-check-not=butterfly:

@halves = internal global [512 x half] zeroinitializer, section "kiln.threadgroup", align 16
@a = internal global [512 x float] zeroinitializer, section "kiln.threadgroup", align 16
@b = internal global [512 x float] zeroinitializer, section "kiln.threadgroup", align 16

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @device_memory(
; CHECK: parts:
define void @device_memory(ptr %x, ptr %y, i32 %first, i32 %j) {
  %lane = call i32 @__kiln_lane()
  %t = add i32 %first, %lane
  %partner = xor i32 %t, %j
  %at = zext i32 %partner to i64
  %from = getelementptr float, ptr %x, i64 %at
  %v = load float, ptr %from
  %to = getelementptr float, ptr %y, i32 %lane
  store float %v, ptr %to
  ret void
}

; CHECK-LABEL: define void @of_halves(
; CHECK: parts:
define void @of_halves(ptr %y, i32 %first, i32 %j) {
  %lane = call i32 @__kiln_lane()
  %t = add i32 %first, %lane
  %partner = xor i32 %t, %j
  %at = zext i32 %partner to i64
  %from = getelementptr half, ptr @halves, i64 %at
  %v = load half, ptr %from
  %to = getelementptr half, ptr %y, i32 %lane
  store half %v, ptr %to
  ret void
}

; Stores of neighbouring lines to two arrays are no butterfly. What lanes' positions are is known here.
; CHECK-LABEL: define void @known_positions(
; CHECK: ret void
define void @known_positions(ptr %x) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %x, i32 %lane
  %v = load float, ptr %from
  %high = lshr i32 %lane, 2
  %twice = shl i32 %high, 3
  %low = and i32 %lane, 3
  %i = or disjoint i32 %twice, %low
  %at = zext i32 %i to i64
  %first = getelementptr float, ptr @a, i64 %at
  %partner = add i32 %i, 4
  %other = zext i32 %partner to i64
  %second = getelementptr float, ptr @a, i64 %other
  store float %v, ptr %first
  store float 0.0, ptr %second
  ret void
}
