; Conditions that are no guards, and comparisons of 64 bits, are none of its business.
; RUN: kiln-opt --passes=guard-extension %s | FileCheck %s

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer

declare i32 @__kiln_lane()

; CHECK-LABEL: define i8 @no_guard(
; CHECK: icmp ult i32 %lane, 16
define i8 @no_guard(ptr %x, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %c = icmp ult i32 %lane, 16
  %i = zext nneg i32 %lane to i64
  %element = getelementptr i8, ptr %x, i64 %i
  %address = select i1 %c, ptr %element, ptr %y
  %v = load i8, ptr %address
  ret i8 %v
}

; CHECK-LABEL: define i8 @wide(
; CHECK-NOT: zext i64
; CHECK: icmp ult i64 %i, 16
define i8 @wide(ptr %x) {
  %lane = call i32 @__kiln_lane()
  %i = zext nneg i32 %lane to i64
  %in_bounds = icmp ult i64 %i, 16
  %element = getelementptr i8, ptr %x, i64 %i
  %address = select i1 %in_bounds, ptr %element, ptr @__kiln_zeros.64
  %v = load i8, ptr %address
  ret i8 %v
}
