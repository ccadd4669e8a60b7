; A function whose end is reached without a return, or which reaches a trap, returns, with zero for its value. No
; promise to the optimiser (assume) remains.
; RUN: kiln-opt --passes=defined-arithmetic %s | FileCheck %s

declare void @llvm.trap()
declare void @llvm.assume(i1)

; CHECK-LABEL: define i32 @missing_return(
; CHECK: other:
; CHECK-NEXT: ret i32 0
; CHECK-NOT: unreachable
define i32 @missing_return(i1 %c, i32 %x) {
  br i1 %c, label %some, label %other

some:
  ret i32 %x

other:
  unreachable
}

; CHECK-LABEL: define void @trap(
; CHECK-NEXT: ret void
define void @trap() {
  call void @llvm.trap()
  unreachable
}

; CHECK-LABEL: define i32 @assumption(
; CHECK-NEXT: %c = icmp sgt i32 %x, 0
; CHECK-NEXT: ret i32 %x
define i32 @assumption(i32 %x) {
  %c = icmp sgt i32 %x, 0
  call void @llvm.assume(i1 %c)
  ret i32 %x
}
