; A value that is loaded through a guard and then masked with zero needs one choice: with the mask in the guard, the
; load reads zeros itself. The condition may be computed after the load.
; RUN: kiln-opt --passes=masked-loads %s | FileCheck %s

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer, align 64

; CHECK-LABEL: define float @known_before(
; CHECK: [[BOTH:%.*]] = and i1 {{%mask, %inside|%inside, %mask}}
; CHECK: %p = select i1 [[BOTH]], ptr %a, ptr @__kiln_zeros.64
; CHECK: %x = load float, ptr %p
; CHECK-NEXT: ret float %x
define float @known_before(ptr %a, i1 %inside, i1 %mask) {
  %p = select i1 %inside, ptr %a, ptr @__kiln_zeros.64
  %x = load float, ptr %p
  %m = select i1 %mask, float %x, float 0.0
  ret float %m
}

; CHECK-LABEL: define i32 @computed_after(
; CHECK-DAG: %next = add i32 %i, 1
; CHECK-DAG: %mask = icmp slt i32 %next, %n
; CHECK: [[BOTH:%.*]] = and i1 {{%mask, %inside|%inside, %mask}}
; CHECK: %p = select i1 [[BOTH]], ptr %a, ptr @__kiln_zeros.64
; CHECK-NEXT: %x = load i32, ptr %p
; CHECK-NOT: select
; CHECK: ret i32 %x
define i32 @computed_after(ptr %a, i1 %inside, i32 %i, i32 %n) {
  %p = select i1 %inside, ptr %a, ptr @__kiln_zeros.64
  %x = load i32, ptr %p
  %next = add i32 %i, 1
  %mask = icmp slt i32 %next, %n
  %m = select i1 %mask, i32 %x, i32 0
  ret i32 %m
}
