; A condition that moves before the load may be computed where it was not before, so what it promised of overflow is
; dropped. It moves together with all that it is computed from.
; RUN: kiln-opt --passes=masked-loads %s | FileCheck %s

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer, align 64

; CHECK-LABEL: define float @other_block(
; CHECK: entry:
; CHECK-DAG: %next = add i32 %i, 1
; CHECK-DAG: %twice = shl i32 %next, 1
; CHECK-DAG: %mask = icmp slt i32 %twice, %n
; CHECK: and i1
; CHECK: %x = load float
; CHECK: late:
; CHECK-NEXT: br label %end
define float @other_block(ptr %a, i1 %inside, i32 %i, i32 %n, i1 %c) {
entry:
  %p = select i1 %inside, ptr %a, ptr @__kiln_zeros.64
  %x = load float, ptr %p
  br i1 %c, label %late, label %end

late:
  %next = add nsw i32 %i, 1
  %twice = shl nuw nsw i32 %next, 1
  %mask = icmp slt i32 %twice, %n
  %m = select i1 %mask, float %x, float 0.0
  br label %end

end:
  %r = phi float [ 1.0, %entry ], [ %m, %late ]
  ret float %r
}
