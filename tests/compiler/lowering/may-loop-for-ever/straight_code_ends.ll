; Branches without a loop.
; RUN: kiln-opt --passes=may-loop-for-ever %s | FileCheck %s

; CHECK: ; straight: ends
define void @straight(ptr %x, i1 %condition) {
entry:
  br i1 %condition, label %then, label %end
then:
  store i32 1, ptr %x
  br label %end
end:
  ret void
}
