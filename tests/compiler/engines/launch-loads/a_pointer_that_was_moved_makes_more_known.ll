; The pointer to the arguments is itself read in the loop. Once it has moved, what it leads to can. A pointer at another
; offset of the launch leads to memory that the pass knows nothing about.
; RUN: kiln-opt --passes=launch-loads %s | FileCheck %s

; CHECK-LABEL: define ptr @loop(
; CHECK-NEXT: entry:
; CHECK: %arguments = load ptr
; CHECK: %data = load ptr
; CHECK: %other = load ptr
; CHECK: br i1
; CHECK: then:
; CHECK-NOT: %data = load
; CHECK: %unknown = load ptr, ptr %other, align 8, !invariant.load
define ptr @loop(ptr %launch, ptr %record, i32 %count, i32 %rows, i1 %runs) {
entry:
  br i1 %runs, label %then, label %end
then:
  %arguments = load ptr, ptr %launch, !invariant.load !0
  %of_argument = getelementptr i8, ptr %arguments, i64 24
  %data = load ptr, ptr %of_argument, !invariant.load !0
  %of_launch = getelementptr i8, ptr %launch, i64 64
  %other = load ptr, ptr %of_launch, !invariant.load !0
  %unknown = load ptr, ptr %other, !invariant.load !0
  %same = icmp eq ptr %data, %unknown
  %result = select i1 %same, ptr %data, ptr null
  ret ptr %result
end:
  ret ptr null
}
!0 = !{}
