; An array is in the frame, not on the stack, which is gone when the thread resumes. A loop's counter is stored for
; the others, who see by it in which iteration the thread waits, and in the frame.
; RUN: kiln-opt --passes=suspend-points %s | FileCheck %s

declare i64 @__kiln_wait.1(i32, i64, i64, i32)

; CHECK: thread: frame of 20 bytes
; CHECK-LABEL: @thread(
; CHECK-NOT: alloca
; CHECK: %[[ARRAY:.+]] = getelementptr inbounds i8, ptr %frame, i64 0
; CHECK: switch
; CHECK: loop:
; CHECK: %i = phi i32 [ 0, %entry ], [ %next, %[[RESUME:.+]] ]
; CHECK: getelementptr float, ptr %[[ARRAY]], i32 %i
; CHECK: %[[COUNTS_AT:.+]] = getelementptr inbounds i8, ptr %record, i64 88
; CHECK: %[[COUNTS:.+]] = load ptr, ptr %[[COUNTS_AT]]
; CHECK: %[[COUNT_AT:.+]] = getelementptr inbounds i32, ptr %[[COUNTS]], i32 0
; CHECK: store i32 %i, ptr %[[COUNT_AT]]
; CHECK: %[[SLOT:.+]] = getelementptr inbounds i8, ptr %frame, i64 16
; CHECK: store i32 %i, ptr %[[SLOT]]
; CHECK: ret void
; CHECK: [[RESUME]]:
; CHECK: %[[I:.+]] = load i32, ptr
; CHECK: %next = add i32 %[[I]], 1
; CHECK: exit:
; CHECK: %first = load float, ptr %[[ARRAY]]
define void @thread(ptr %launch, ptr %record, ptr %frame) {
entry:
  %array = alloca [4 x float], align 16
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %element = getelementptr float, ptr %array, i32 %i
  store float 1.0, ptr %element
  %unused = call i64 @__kiln_wait.1(i32 0, i64 0, i64 0, i32 %i)
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, 4
  br i1 %more, label %loop, label %exit
exit:
  %first = load float, ptr %array
  store float %first, ptr %launch
  ret void
}
