; The pass is for one function. While another one still has its half, the declaration stays.
; RUN: kiln-opt --passes=half-offset --function=first %s | FileCheck %s

; CHECK-LABEL: define i32 @first(
; CHECK-NEXT: ret i32 %half
define i32 @first(ptr %launch, ptr %record, i32 %half, i32 %row, i32 %x) {
  %offset = call i32 @__kiln_piece()
  ret i32 %offset
}

; CHECK-LABEL: define i32 @second(
; CHECK-NEXT: %offset = call i32 @__kiln_piece()
; CHECK: declare i32 @__kiln_piece()
define i32 @second(ptr %launch, ptr %record, i32 %half, i32 %row, i32 %x) {
  %offset = call i32 @__kiln_piece()
  ret i32 %offset
}
declare i32 @__kiln_piece()
