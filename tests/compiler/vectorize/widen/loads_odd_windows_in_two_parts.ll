; Pairs of lanes load every other byte: 31 bytes, as two overlapping vectors of 16.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @every_other(
; CHECK: %[[LOW:.*]] = load <16 x i8>, ptr %[[FROM:.*]], align 1
; CHECK: %[[AT:.*]] = getelementptr i8, ptr %[[FROM]], i32 15
; CHECK: %[[HIGH:.*]] = load <16 x i8>, ptr %[[AT]], align 1
; CHECK: shufflevector <16 x i8> %[[LOW]], <16 x i8> %[[HIGH]], <32 x i32> <i32 0, i32 0, i32 2, i32 2,
; CHECK-SAME: i32 14, i32 14, i32 17, i32 17, i32 19, i32 19,
; CHECK-SAME: i32 31, i32 31>
define void @every_other(ptr %x, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %even = and i32 %lane, -2
  %at = zext i32 %even to i64
  %from = getelementptr i8, ptr %x, i64 %at
  %byte = load i8, ptr %from, align 1
  %to = getelementptr i8, ptr %y, i32 %lane
  store i8 %byte, ptr %to
  ret void
}
