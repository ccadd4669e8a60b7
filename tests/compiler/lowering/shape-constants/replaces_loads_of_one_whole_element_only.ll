; A load of another type, of a part of an element or across two is left, and so is one before the first element or
; behind the padded number of dimensions.
; RUN: kiln-opt --passes=shape-constants --parameters=shape:4 --values=3,5 %s | FileCheck %s

; CHECK-LABEL: define void @body(
; CHECK: %a = load i64, ptr %shape
; CHECK: %b = load i16, ptr %shape
; CHECK: %c = load float, ptr %shape
; CHECK: %d = load i32, ptr %across
; CHECK: %e = load i32, ptr %before
; CHECK-NOT: %last =
; CHECK: %f = load i32, ptr %behind
define void @body(ptr %shape, i64 %shape.first, i64 %shape.end, ptr %thread) {
  %a = load i64, ptr %shape
  %b = load i16, ptr %shape
  %c = load float, ptr %shape
  %across = getelementptr i8, ptr %shape, i64 2
  %d = load i32, ptr %across
  %before = getelementptr i8, ptr %shape, i64 -4
  %e = load i32, ptr %before
  %at.last = getelementptr i8, ptr %shape, i64 60
  %last = load i32, ptr %at.last
  %behind = getelementptr i8, ptr %shape, i64 64
  %f = load i32, ptr %behind
  ret void
}
