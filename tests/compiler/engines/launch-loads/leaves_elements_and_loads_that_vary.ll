; An element of an array may not be there, a load without the mark of invariance may change, and an address that a
; variable is a part of may be anywhere.
; RUN: kiln-opt --passes=launch-loads %s | FileCheck %s

; CHECK-LABEL: define void @loop(
; CHECK: loop:
; CHECK: %element = load i32, ptr %data, align 4, !invariant.load
; CHECK: %polled = load i32, ptr %of_launch
; CHECK: %indexed = load i32, ptr %at, align 4, !invariant.load
; CHECK: br i1
define void @loop(ptr %launch, ptr %record, i32 %count, i32 %rows, ptr %data, i1 %runs) {
entry:
  br i1 %runs, label %loop, label %end
loop:
  %element = load i32, ptr %data, !invariant.load !0
  %of_launch = getelementptr i8, ptr %launch, i64 8
  %polled = load i32, ptr %of_launch
  %at = getelementptr i32, ptr %record, i32 %count
  %indexed = load i32, ptr %at, !invariant.load !0
  %some = add i32 %element, %polled
  %sum = add i32 %some, %indexed
  %again = icmp ult i32 %sum, %count
  br i1 %again, label %loop, label %end
end:
  ret void
}
!0 = !{}
