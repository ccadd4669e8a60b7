; After the last pass that may make conditions constant, counters of loops that nothing else uses need not be kept. The
; counter itself is left to LLVM's passes, which see no use of it then.
; RUN: kiln-opt --passes=remove-iterations %s | FileCheck %s
; RUN: kiln-opt --passes=remove-iterations,adce %s | FileCheck %s --check-prefix=ADCE

declare void @__kiln_iteration1(i32)
declare void @__kiln_iteration2(i32, i32)
declare i1 @goes_on()

; CHECK-LABEL: define void @loop(
; CHECK: loop:
; CHECK-NEXT: %i = phi i32 [ 0, %entry ], [ %next, %loop ]
; CHECK-NEXT: %next = add i32 %i, 1
; CHECK-NEXT: %again = call i1 @goes_on()
; CHECK-NEXT: br i1 %again
; CHECK: end:
; CHECK-NEXT: ret void
; ADCE-LABEL: define void @loop(
; ADCE-NOT: phi
; ADCE-NOT: add
; ADCE: ret void
define void @loop() {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  call void @__kiln_iteration1(i32 %i)
  %next = add i32 %i, 1
  %again = call i1 @goes_on()
  br i1 %again, label %loop, label %end
end:
  call void @__kiln_iteration2(i32 %i, i32 %next)
  ret void
}
