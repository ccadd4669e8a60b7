; A mark has a counter for each loop around it: any number of them. Where a loop was unrolled its counter is a constant,
; and a mark may be in a block that nothing reaches. A function without marks stays the same.
; RUN: kiln-opt --passes=remove-iterations %s | FileCheck %s

declare void @__kiln_iteration3(i32, i32, i32)

; CHECK-LABEL: define void @unrolled(
; CHECK-NEXT: store i32 %i, ptr %out
; CHECK-NEXT: ret void
; CHECK: unreached:
; CHECK-NEXT: ret void
define void @unrolled(ptr %out, i32 %i, i32 %j) {
  call void @__kiln_iteration3(i32 %i, i32 %j, i32 0)
  call void @__kiln_iteration3(i32 %i, i32 %j, i32 1)
  store i32 %i, ptr %out
  ret void
unreached:
  call void @__kiln_iteration3(i32 0, i32 0, i32 2)
  ret void
}

; CHECK-LABEL: define i32 @without(
; CHECK-NEXT: ret i32 %i
define i32 @without(i32 %i) {
  ret i32 %i
}
