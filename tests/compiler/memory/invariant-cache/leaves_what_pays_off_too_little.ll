; A value in the table must save two vector operations. One saves nothing beside the load.
; RUN: kiln-opt --passes=invariant-cache %s | FileCheck %s
; RUN: kiln-opt --passes=invariant-cache --remarks %s 2>&1 | FileCheck %s --check-prefix=REMARK

; REMARK: remark: invariant-cache: not in this loop: a table with 1 value an iteration would save only 1 of its 3 vector operations
; REMARK-NOT: remark:

; CHECK: two_operations: cache of 576 bytes
; CHECK: one_operation: cache of 0 bytes
; CHECK-LABEL: @one_operation(
; CHECK-NOT: kiln.invariant_cache
; CHECK: ret void
define void @two_operations(ptr %launch, ptr %record, ptr %frame, ptr %tables, i32 %x, i32 %lanes) {
entry:
  %vector = load ptr, ptr %launch, !invariant.load !0
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi <8 x float> [ zeroinitializer, %entry ], [ %sum.next, %loop ]
  %part.at = getelementptr <8 x float>, ptr %vector, i64 %i
  %part = load <8 x float>, ptr %part.at, !invariant.load !0
  %scaled0 = fmul <8 x float> %part, %part
  %scaled1 = fmul <8 x float> %scaled0, %part
  %row.at = getelementptr <8 x float>, ptr %record, i64 %i
  %row = load <8 x float>, ptr %row.at
  %product = fmul <8 x float> %row, %scaled1
  %sum.next = fadd <8 x float> %sum, %product
  %next = add i64 %i, 1
  %is_last = icmp eq i64 %next, 16
  br i1 %is_last, label %exit, label %loop
exit:
  store <8 x float> %sum.next, ptr %record
  ret void
}

define void @one_operation(ptr %launch, ptr %record, ptr %frame, ptr %tables, i32 %x, i32 %lanes) {
entry:
  %vector = load ptr, ptr %launch, !invariant.load !0
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi <8 x float> [ zeroinitializer, %entry ], [ %sum.next, %loop ]
  %part.at = getelementptr <8 x float>, ptr %vector, i64 %i
  %part = load <8 x float>, ptr %part.at, !invariant.load !0
  %scaled0 = fmul <8 x float> %part, %part
  %row.at = getelementptr <8 x float>, ptr %record, i64 %i
  %row = load <8 x float>, ptr %row.at
  %product = fmul <8 x float> %row, %scaled0
  %sum.next = fadd <8 x float> %sum, %product
  %next = add i64 %i, 1
  %is_last = icmp eq i64 %next, 16
  br i1 %is_last, label %exit, label %loop
exit:
  store <8 x float> %sum.next, ptr %record
  ret void
}

!0 = !{}
