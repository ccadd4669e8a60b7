; A choice that depends on data, or on two numbers that differ between lanes, has no side that the first and the last lane
; could tell.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s

declare i32 @__kiln_lane()
declare i32 @llvm.smax.i32(i32, i32)

; CHECK-LABEL: define void @of_data(
; CHECK-NOT: label %row,
; CHECK: ret void
define void @of_data(ptr %x, ptr %y, ptr %c, i32 %first) {
  %lane = call i32 @__kiln_lane()
  %i = add i32 %first, %lane
  %at_c = getelementptr i32, ptr %c, i32 %lane
  %number = load i32, ptr %at_c, !invariant.load !0
  %clamped = call i32 @llvm.smax.i32(i32 %i, i32 %number)
  %at = sext i32 %clamped to i64
  %from = getelementptr float, ptr %x, i64 %at
  %v = load float, ptr %from
  %to = getelementptr float, ptr %y, i32 %lane
  store float %v, ptr %to
  ret void
}

!0 = !{}
