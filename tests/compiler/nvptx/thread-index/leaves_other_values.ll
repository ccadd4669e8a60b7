; Positions, extents, and what is no value of a thread at all.
; RUN: kiln-opt --passes=thread-index %s | FileCheck %s

declare i32 @__kiln_value(i32)
declare i32 @value(i32)

; CHECK-LABEL: define i32 @position(
; CHECK-NEXT: %x = call i32 @__kiln_value(i32 0)
; CHECK-NEXT: %last = call i32 @__kiln_value(i32 17)
; CHECK-NEXT: %other = call i32 @value(i32 18)
; CHECK-NOT: @__kiln_lane
define i32 @position() {
  %x = call i32 @__kiln_value(i32 0)
  %last = call i32 @__kiln_value(i32 17)
  %other = call i32 @value(i32 18)
  %sum = add i32 %x, %last
  %both = add i32 %sum, %other
  ret i32 %both
}
