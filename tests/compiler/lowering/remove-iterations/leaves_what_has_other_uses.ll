; A counter that an access needs stays, as do calls of other functions and the mark's operands that are no counters.
; RUN: kiln-opt --passes=remove-iterations,adce %s | FileCheck %s

declare void @__kiln_iteration1(i32)
declare void @iteration(i32)
declare i1 @goes_on()

; CHECK-LABEL: define void @loop(
; CHECK: loop:
; CHECK-NEXT: %i = phi i32
; CHECK-NEXT: %address = getelementptr i32, ptr %out, i32 %i
; CHECK-NEXT: store i32 1, ptr %address
; CHECK-NEXT: call void @iteration(i32 %i)
; CHECK-NEXT: %next = add i32 %i, 1
define void @loop(ptr %out) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  call void @__kiln_iteration1(i32 %i)
  %address = getelementptr i32, ptr %out, i32 %i
  store i32 1, ptr %address
  call void @iteration(i32 %i)
  %next = add i32 %i, 1
  %again = call i1 @goes_on()
  br i1 %again, label %loop, label %end
end:
  ret void
}
