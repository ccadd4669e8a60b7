; The border: 65535 fits without a sign, -32768 with one, and no range that has both. Shifts and minima of such numbers
; take them as they are.
; RUN: kiln-opt --passes=narrow-integers %s | FileCheck %s

declare i32 @__kiln_lane()
declare i32 @llvm.smax.i32(i32, i32)
declare i32 @llvm.abs.i32(i32, i1)

; CHECK-LABEL: define i1 @largest(
; CHECK: %[[M:.*]] = call i16 @llvm.umax.i16(i16 %a, i16 -2)
; CHECK: %[[S:.*]] = lshr i16 %[[M]], 1
; CHECK: icmp ult i16 %[[S]], 32767
define i1 @largest(ptr %x) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i16, ptr %x, i32 %lane
  %a = load i16, ptr %at
  %w = zext i16 %a to i32
  %m = call i32 @llvm.smax.i32(i32 %w, i32 65534)
  %s = ashr i32 %m, 1
  %r = icmp slt i32 %s, 32767
  ret i1 %r
}

; The absolute value of -32768 has no sign.
; CHECK-LABEL: define i1 @smallest(
; CHECK: %[[A:.*]] = call i16 @llvm.abs.i16(i16 %a, i1 false)
; CHECK: %[[H:.*]] = lshr i16 %[[A]], 3
; CHECK: icmp ugt i16 %[[H]], 4000
define i1 @smallest(ptr %x) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i16, ptr %x, i32 %lane
  %a = load i16, ptr %at
  %w = sext i16 %a to i32
  %p = call i32 @llvm.abs.i32(i32 %w, i1 false)
  %h = ashr i32 %p, 3
  %r = icmp sgt i32 %h, 4000
  ret i1 %r
}

; CHECK-LABEL: define i1 @both(
; CHECK: sub i32
; CHECK: icmp slt i32
define i1 @both(ptr %x) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i16, ptr %x, i32 %lane
  %a = load i16, ptr %at
  %w = zext i16 %a to i32
  %d = sub i32 40000, %w
  %r = icmp slt i32 %d, -20000
  ret i1 %r
}
