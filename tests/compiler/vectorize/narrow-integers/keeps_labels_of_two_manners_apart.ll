; Labels of a switch become those of 16 bits where all are unsigned or all are signed: 65000 and -536 have the same bits.
; RUN: kiln-opt --passes=narrow-integers %s | FileCheck %s

; CHECK: switch i32
; CHECK-NEXT: i32 65000
; CHECK-NEXT: i32 -536
declare i32 @__kiln_lane()
define i8 @f(ptr %x) {
entry:
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i8, ptr %x, i32 %lane
  %a = load i8, ptr %at
  %wa = zext i8 %a to i32
  %b = mul i32 %wa, 3
  %s = add i32 %b, %wa
  switch i32 %s, label %other [
    i32 65000, label %two
    i32 -536, label %three
  ]
two:
  ret i8 1
three:
  ret i8 2
other:
  ret i8 0
}
