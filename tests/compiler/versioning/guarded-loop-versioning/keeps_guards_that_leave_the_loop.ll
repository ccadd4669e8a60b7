; Simplifying a loop may move a guard that it does not change in front of it. Both versions use it then, so it stays.
; RUN: kiln-opt --passes=guarded-loop-versioning %s | FileCheck %s

; CHECK: %guarded = select i1 %c, ptr %a, ptr @__kiln_zeros.64
; CHECK: load volatile float, ptr %guarded
; CHECK-NOT: ptr %a,
@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer, align 64

define float @may_stop(ptr %a, i1 %c, i32 %n, i32 %m) {
entry:
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %latch ]
  %sum = phi float [ 0.0, %entry ], [ %total, %latch ]
  %more = icmp ult i32 %k, %n
  br i1 %more, label %body, label %e
body:
  %guarded = select i1 %c, ptr %a, ptr @__kiln_zeros.64
  %stop = icmp eq i32 %k, %m
  br i1 %stop, label %e, label %latch
latch:
  %value = load volatile float, ptr %guarded
  %total = fadd float %sum, %value
  %next = add nuw nsw i32 %k, 1
  br label %loop
e:
  ret float %sum
}
