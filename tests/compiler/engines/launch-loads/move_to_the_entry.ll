; What is read from the launch and from a thread's record is always there, so that it leaves a loop that may not run. The
; pointer to the arguments, at the launch's beginning, leads to memory that is there too.
; RUN: kiln-opt --passes=launch-loads %s | FileCheck %s

; CHECK-LABEL: define void @loop(
; CHECK-NEXT: entry:
; CHECK-NEXT: %arguments = load ptr, ptr %launch
; CHECK: load i32, ptr %{{.+}}, align 4, !invariant.load
; CHECK: load i32, ptr %{{.+}}, align 4, !invariant.load
; CHECK: load ptr, ptr %{{.+}}, align 8, !invariant.load
; CHECK: br i1 %runs
; CHECK: loop:
; CHECK-NOT: !invariant.load
; CHECK: ret void
define void @loop(ptr %launch, ptr %record, i32 %count, i32 %rows, i1 %runs) {
entry:
  %arguments = load ptr, ptr %launch
  br i1 %runs, label %loop, label %end
loop:
  %of_launch = getelementptr i8, ptr %launch, i64 8
  %extent = load i32, ptr %of_launch, !invariant.load !0
  %of_record = getelementptr i8, ptr %record, i64 12
  %position = load i32, ptr %of_record, !invariant.load !0
  %of_argument = getelementptr i8, ptr %arguments, i64 24
  %data = load ptr, ptr %of_argument, !invariant.load !0
  %sum = add i32 %extent, %position
  store i32 %sum, ptr %data
  %again = icmp ult i32 %sum, %count
  br i1 %again, label %loop, label %end
end:
  ret void
}
!0 = !{}
