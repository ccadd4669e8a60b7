; Of a loop that counts by one up to a number, the trip count is known. One that waits for equality in steps of two may
; step over the end.
; RUN: kiln-opt --passes=may-loop-for-ever %s | FileCheck %s

; CHECK-DAG: ; counted: ends
; CHECK-DAG: ; by_twos: may loop for ever
define void @counted(ptr %x, i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  store volatile i32 %i, ptr %x
  %next = add nuw i32 %i, 1
  %again = icmp ult i32 %next, %n
  br i1 %again, label %loop, label %end
end:
  ret void
}

define void @by_twos(ptr %x, i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  store volatile i32 %i, ptr %x
  %next = add i32 %i, 2
  %again = icmp ne i32 %next, %n
  br i1 %again, label %loop, label %end
end:
  ret void
}
