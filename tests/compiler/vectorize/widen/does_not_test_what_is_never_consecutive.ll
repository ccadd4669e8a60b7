; An index that comes from memory alone is not tested, nor is one whose lanes have a common factor, nor an access to
; threads' own arrays, which are apart.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s --implicit-check-not=parts:

declare i32 @__kiln_lane()
declare i32 @llvm.smax.i32(i32, i32)

; CHECK-LABEL: define void @from_memory(
; CHECK: call <32 x float> @llvm.masked.gather
define void @from_memory(ptr %x, ptr %indices, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i32, ptr %indices, i32 %lane
  %k = load i32, ptr %at
  %from = getelementptr float, ptr %x, i32 %k
  %v = load float, ptr %from
  %to = getelementptr float, ptr %y, i32 %lane
  store float %v, ptr %to
  ret void
}

; CHECK-LABEL: define void @every_second(
; CHECK: call <32 x float> @llvm.masked.gather
define void @every_second(ptr %x, ptr %y, i32 %first) {
  %lane = call i32 @__kiln_lane()
  %i = add i32 %first, %lane
  %clamped = call i32 @llvm.smax.i32(i32 %i, i32 0)
  %at = sext i32 %clamped to i64
  %twice = shl i64 %at, 1
  %from = getelementptr float, ptr %x, i64 %twice
  %v = load float, ptr %from
  %to = getelementptr float, ptr %y, i32 %lane
  store float %v, ptr %to
  ret void
}

; CHECK-LABEL: define void @own_array(
; CHECK: call <32 x float> @llvm.masked.gather
define void @own_array(ptr %y, i32 %first) {
  %own = alloca [8 x float]
  %lane = call i32 @__kiln_lane()
  %i = add i32 %first, %lane
  %some = and i32 %i, 7
  %clamped = call i32 @llvm.smax.i32(i32 %some, i32 2)
  %from = getelementptr [8 x float], ptr %own, i32 0, i32 %clamped
  %v = load float, ptr %from
  %to = getelementptr float, ptr %y, i32 %lane
  store float %v, ptr %to
  ret void
}
