; The function that contains the loop is what is marked: not one that merely calls it, whose marks would be around the
; inner ones, and not the address of the function.
; RUN: kiln-opt --passes=mark-calls %s | FileCheck %s

declare i32 @__kiln_loop_enter() convergent
declare void @use(ptr)

define internal i32 @enter() convergent {
  %mark = call i32 @__kiln_loop_enter() convergent
  ret i32 %mark
}

define internal void @with_loop() {
entry:
  %mark = call i32 @enter() convergent
  br label %loop
loop:
  br label %loop
}

; CHECK-LABEL: define internal void @calls_it(
; CHECK-NEXT: %[[MARK:.*]] = call i32 @__kiln_call_enter()
; CHECK-NEXT: call void @with_loop()
; CHECK-NEXT: call void @__kiln_call_merge(i32 %[[MARK]])
; CHECK-NEXT: ret void
define internal void @calls_it() {
  call void @with_loop()
  ret void
}

; CHECK-LABEL: define void @body(
; CHECK-NEXT: call void @calls_it()
; CHECK-NEXT: call void @use(ptr @with_loop)
; CHECK-NEXT: ret void
define void @body() {
  call void @calls_it()
  call void @use(ptr @with_loop)
  ret void
}
