; Nothing is inside a loop of a function that has none, so that its calls need no marks; nor does a module without
; loops.
; RUN: kiln-opt --passes=mark-calls %s | FileCheck %s

; CHECK-NOT: @__kiln_call_

define internal i32 @no_loop(i32 %n) {
  %r = add i32 %n, 1
  ret i32 %r
}

; CHECK-LABEL: define i32 @body(
; CHECK-NEXT: %a = call i32 @no_loop(i32 %n)
; CHECK-NEXT: ret i32 %a
define i32 @body(i32 %n) {
  %a = call i32 @no_loop(i32 %n)
  ret i32 %a
}

; CHECK-NOT: @__kiln_call_
