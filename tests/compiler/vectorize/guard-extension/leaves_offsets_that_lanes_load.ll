; Each lane loads its own offset, as in a look-up in a table of bytes: lanes access no neighbors, and comparing 32 bits
; takes half the time.
; RUN: kiln-opt --passes=guard-extension %s | FileCheck %s

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer

declare i32 @__kiln_lane()

; CHECK-LABEL: define i8 @table(
; CHECK: icmp ult i32 %doubled, 40
define i8 @table(ptr %x, ptr %indices) {
  %lane = call i32 @__kiln_lane()
  %j = zext nneg i32 %lane to i64
  %from = getelementptr i32, ptr %indices, i64 %j
  %index = load i32, ptr %from
  %doubled = shl i32 %index, 1
  %in_bounds = icmp ult i32 %doubled, 40
  %i = zext i32 %doubled to i64
  %element = getelementptr i8, ptr %x, i64 %i
  %address = select i1 %in_bounds, ptr %element, ptr @__kiln_zeros.64
  %v = load i8, ptr %address
  ret i8 %v
}
