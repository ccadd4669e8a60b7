; A function that returns out of its loop skips the loop's mark, so each call of a function with loops has marks around
; it. The loops call a function of the device library, which calls the mark.
; RUN: kiln-opt --passes=mark-calls %s | FileCheck %s

declare i32 @__kiln_loop_enter() convergent

define internal i32 @enter() convergent {
  %mark = call i32 @__kiln_loop_enter() convergent
  ret i32 %mark
}

define internal i32 @with_loop(i32 %n) {
entry:
  %mark = call i32 @enter() convergent
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  %i.next = add i32 %i, 1
  %again = icmp ult i32 %i.next, %n
  br i1 %again, label %loop, label %done
done:
  ret i32 %i
}

; CHECK-LABEL: define i32 @body(
; CHECK-NEXT: %[[FIRST:.*]] = call i32 @__kiln_call_enter()
; CHECK-NEXT: %a = call i32 @with_loop(i32 %n)
; CHECK-NEXT: call void @__kiln_call_merge(i32 %[[FIRST]])
; CHECK-NEXT: %[[SECOND:.*]] = call i32 @__kiln_call_enter()
; CHECK-NEXT: %b = call i32 @with_loop(i32 %a)
; CHECK-NEXT: call void @__kiln_call_merge(i32 %[[SECOND]])
; CHECK-NEXT: ret i32 %b
define i32 @body(i32 %n) {
  %a = call i32 @with_loop(i32 %n)
  %b = call i32 @with_loop(i32 %a)
  ret i32 %b
}

; The marks stay where the same threads execute them together.
; CHECK-DAG: declare i32 @__kiln_call_enter() #[[MARK:[0-9]+]]
; CHECK-DAG: declare void @__kiln_call_merge(i32) #[[MARK]]
; CHECK: attributes #[[MARK]] = { convergent nounwind }
