; The half of a coarsened pair becomes the function's third parameter, wherever it is used.
; RUN: kiln-opt --passes=half-offset %s | FileCheck %s

declare i32 @__kiln_piece()

; CHECK-NOT: declare i32 @__kiln_piece
; CHECK-LABEL: define i32 @position(
; CHECK-NEXT: entry:
; CHECK-NEXT: %base = and i32 %x, -64
; CHECK-NEXT: br i1 %condition
; CHECK: then:
; CHECK-NEXT: %sum = or i32 %base, %half
; CHECK-NEXT: ret i32 %sum
; CHECK: else:
; CHECK-NEXT: ret i32 %half
define i32 @position(ptr %launch, ptr %record, i32 %half, i32 %row, i32 %x, i1 %condition) {
entry:
  %first = call i32 @__kiln_piece()
  %base = and i32 %x, -64
  br i1 %condition, label %then, label %else
then:
  %sum = or i32 %base, %first
  ret i32 %sum
else:
  %second = call i32 @__kiln_piece()
  ret i32 %second
}
