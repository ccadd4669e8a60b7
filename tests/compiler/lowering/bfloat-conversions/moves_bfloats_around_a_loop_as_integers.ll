; A phi of bfloats becomes one of integers, also where a value comes back to the loop's start that is defined after it.
; Metadata of the accesses stays.
; RUN: kiln-opt --passes=bfloat-conversions %s | FileCheck %s

; CHECK-LABEL: define void @last(
; CHECK-NOT: bfloat
; CHECK: loop:
; CHECK-DAG: [[KEPT:%.*]] = phi i16 [ 16256, %entry ], [ [[X:%.*]], %loop ]
; CHECK-DAG: %i = phi i32
; CHECK: [[X]] = load i16, ptr %a, align 2, !invariant.load
; CHECK: end:
; CHECK: store i16 [[KEPT]], ptr %out, align 2
; CHECK-NOT: bfloat
; CHECK: ret void
define void @last(ptr %p, ptr %out, i32 %n) {
entry:
  br label %loop

loop:
  %kept = phi bfloat [ 0xR3F80, %entry ], [ %x, %loop ]
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %a = getelementptr bfloat, ptr %p, i32 %i
  %x = load bfloat, ptr %a, align 2, !invariant.load !0
  %next = add i32 %i, 1
  %c = icmp slt i32 %next, %n
  br i1 %c, label %loop, label %end

end:
  store bfloat %kept, ptr %out, align 2
  ret void
}

!0 = !{}
