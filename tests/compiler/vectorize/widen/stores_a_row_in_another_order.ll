; Lanes that write the elements of a row in another order, such as backwards, are permuted and written as a vector. Elements
; that two lanes write, or none, are not a row.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @mirrored(
; CHECK: %[[VALUES:.+]] = load <32 x i8>
; CHECK: {{^}}row:
; CHECK: %[[ROW:.+]] = shufflevector <32 x i8> %[[VALUES]], <32 x i8> poison, <32 x i32> <i32 31, i32 30, i32 29, {{.+}}, i32 1, i32 0>
; CHECK: store <32 x i8> %[[ROW]]
; CHECK: {{^}}lanes:
define void @mirrored(ptr %x, ptr %y, i32 %first, i32 %n) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr i8, ptr %x, i32 %lane
  %v = load i8, ptr %from
  %i = add i32 %first, %lane
  %back = sub i32 %n, %i
  %at = sext i32 %back to i64
  %to = getelementptr i8, ptr %y, i64 %at
  store i8 %v, ptr %to
  ret void
}

; All bits of a position inverted go backwards, too.
; CHECK-LABEL: define void @inverted(
; CHECK: shufflevector <32 x float> %{{.+}}, <32 x float> poison, <32 x i32> <i32 31, i32 30
; CHECK: store <32 x float>
define void @inverted(ptr %x, ptr %y, i64 %n) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %x, i32 %lane
  %v = load float, ptr %from
  %wide = zext i32 %lane to i64
  %inverted = xor i64 %wide, -1
  %at = add i64 %n, %inverted
  %to = getelementptr float, ptr %y, i64 %at
  store float %v, ptr %to
  ret void
}

; Neighbors change places.
; CHECK-LABEL: define void @swapped(
; CHECK: shufflevector <32 x float> %{{.+}}, <32 x float> poison, <32 x i32> <i32 1, i32 0, i32 3, i32 2
; CHECK: store <32 x float>
define void @swapped(ptr %x, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %x, i32 %lane
  %v = load float, ptr %from
  %other = xor i32 %lane, 1
  %wide = zext i32 %other to i64
  %to = getelementptr float, ptr %y, i64 %wide
  store float %v, ptr %to
  ret void
}

; CHECK-LABEL: define void @in_pairs(
; CHECK-NOT: shufflevector <32 x float>
; CHECK: ret void
define void @in_pairs(ptr %x, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %x, i32 %lane
  %v = load float, ptr %from
  %half = lshr i32 %lane, 1
  %wide = zext i32 %half to i64
  %to = getelementptr float, ptr %y, i64 %wide
  store float %v, ptr %to
  ret void
}
