; A function that does not depend on its half stays the same.
; RUN: kiln-opt --passes=half-offset %s | FileCheck %s

declare i32 @piece()

; CHECK-LABEL: define i32 @position(
; CHECK-NEXT: %other = call i32 @piece()
; CHECK-NEXT: %sum = add i32 %row, %other
; CHECK-NEXT: ret i32 %sum
define i32 @position(ptr %launch, ptr %record, i32 %half, i32 %row, i32 %x) {
  %other = call i32 @piece()
  %sum = add i32 %row, %other
  ret i32 %sum
}
