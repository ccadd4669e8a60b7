; No counter bounds the loop: it needs a poll, so that a launch can be interrupted.
; RUN: kiln-opt --passes=may-loop-for-ever %s | FileCheck %s

; CHECK: ; by_data: may loop for ever
define void @by_data(ptr %x) {
entry:
  br label %loop
loop:
  %value = load volatile i32, ptr %x
  %again = icmp ne i32 %value, 0
  br i1 %again, label %loop, label %end
end:
  ret void
}
