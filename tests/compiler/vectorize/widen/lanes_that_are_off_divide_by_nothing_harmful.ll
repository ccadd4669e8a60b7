; A lane that is off computes with whatever values it has. A division could trap there, so its divisor is changed to one
; that cannot; a constant divisor need not be.
; RUN: kiln-opt --passes=widen %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @unknown_divisor(
; CHECK: %[[D:.*]] = call <32 x i64> @llvm.masked.load
; CHECK: %[[SAFE:.*]] = call <32 x i64> @llvm.umax.v32i64(<32 x i64> %[[D]], <32 x i64> <i64 1,
; CHECK: %[[BY:.*]] = select <32 x i1> %mask, <32 x i64> %[[SAFE]], <32 x i64> <i64 1,
; CHECK: udiv <32 x i64> {{.*}}, %[[BY]]
define void @unknown_divisor(ptr %x, ptr %y, i32 %lanes) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr i64, ptr %x, i32 %lane
  %d = load i64, ptr %from
  %q = udiv i64 1000, %d
  %to = getelementptr i64, ptr %y, i32 %lane
  store i64 %q, ptr %to
  ret void
}

; CHECK-LABEL: define void @constant_divisor(
; CHECK: %[[N:.*]] = call <32 x i32> @llvm.masked.load
; CHECK: udiv <32 x i32> %[[N]], <i32 7, i32 7,
define void @constant_divisor(ptr %x, ptr %y, i32 %lanes) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr i32, ptr %x, i32 %lane
  %n = load i32, ptr %from
  %q = udiv i32 %n, 7
  %to = getelementptr i32, ptr %y, i32 %lane
  store i32 %q, ptr %to
  ret void
}
