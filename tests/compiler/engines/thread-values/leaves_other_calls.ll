; Calls of other functions, and of a pseudo-intrinsic of another name.
; RUN: kiln-opt --passes=thread-values %s | FileCheck %s

declare i32 @__kiln_values(i32)
declare i32 @__kiln_lane()

; CHECK-LABEL: define i32 @position(
; CHECK-NEXT: %x = call i32 @__kiln_values(i32 0)
; CHECK-NEXT: %lane = call i32 @__kiln_lane()
; CHECK-NEXT: %sum = add i32 %x, %lane
define i32 @position(ptr %in, ptr %record) {
  %x = call i32 @__kiln_values(i32 0)
  %lane = call i32 @__kiln_lane()
  %sum = add i32 %x, %lane
  ret i32 %sum
}
