; A thread that waits stores where it goes on, its site (counted from 1), and the value and the operand for the
; others, and returns. Called again, it jumps there, with the result. A value that is live meanwhile is in the frame.
; At its end the site says that it has returned.
; RUN: kiln-opt --passes=suspend-points %s | FileCheck %s

declare i64 @__kiln_wait(i32, i64, i64)

; CHECK: thread: frame of 4 bytes
; CHECK-LABEL: @thread(
; CHECK: %[[ENTRY_AT:.+]] = getelementptr inbounds i8, ptr %record, i64 80
; CHECK: %[[ENTRY:.+]] = load i32, ptr %[[ENTRY_AT]]
; CHECK: switch i32 %[[ENTRY]], label %[[START:.+]] [
; CHECK-NEXT: i32 1, label %[[RESUME:.+]]
; CHECK: [[START]]:
; CHECK: %square = fmul float %x, %x
; CHECK: store i32 1, ptr
; CHECK: %[[SITE_AT:.+]] = getelementptr inbounds i8, ptr %record, i64 76
; CHECK: store i32 4, ptr %[[SITE_AT]]
; CHECK: %[[VALUE_AT:.+]] = getelementptr inbounds i8, ptr %{{.+}}, i64 0
; CHECK: store i64 5, ptr %[[VALUE_AT]]
; CHECK: %[[OPERAND_AT:.+]] = getelementptr inbounds i8, ptr %{{.+}}, i64 256
; CHECK: store i64 7, ptr %[[OPERAND_AT]]
; CHECK: %[[SLOT:.+]] = getelementptr inbounds i8, ptr %frame, i64 0
; CHECK: store float %square, ptr %[[SLOT]]
; CHECK: ret void
; CHECK: [[RESUME]]:
; CHECK: %[[SLOT_AGAIN:.+]] = getelementptr inbounds i8, ptr %frame, i64 0
; CHECK: %[[SQUARE:.+]] = load float, ptr %[[SLOT_AGAIN]]
; CHECK: %[[RESULT_AT:.+]] = getelementptr inbounds i8, ptr %{{.+}}, i64 512
; CHECK: %[[RESULT:.+]] = load i64, ptr %[[RESULT_AT]]
; CHECK: store i64 %[[RESULT]], ptr %launch
; CHECK: store float %[[SQUARE]], ptr %record
; CHECK: store i32 0, ptr
; CHECK: ret void
define void @thread(ptr %launch, ptr %record, ptr %frame, float %x) {
  %square = fmul float %x, %x
  %result = call i64 @__kiln_wait(i32 3, i64 5, i64 7)
  store i64 %result, ptr %launch
  store float %square, ptr %record
  ret void
}
