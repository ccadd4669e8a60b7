; Only a plain load at a constant index is known: an index that is computed may be any, and other arrays' elements are
; not in the unit.
; RUN: kiln-opt --passes=shape-constants --parameters=in:4,shape:4 --values=3,5 %s | FileCheck %s

; CHECK-LABEL: define void @body(
; CHECK: %a = load i32, ptr %x
; CHECK: %b = load i32, ptr %at.i
; CHECK: %c = load volatile i32, ptr %shape
; CHECK: store i32 9, ptr %shape
define void @body(ptr %x, i64 %x.first, i64 %x.end, ptr %shape, i64 %shape.first, i64 %shape.end, ptr %thread, i64 %i) {
  %a = load i32, ptr %x
  %at.i = getelementptr i32, ptr %shape, i64 %i
  %b = load i32, ptr %at.i
  %c = load volatile i32, ptr %shape
  store i32 9, ptr %shape
  ret void
}
