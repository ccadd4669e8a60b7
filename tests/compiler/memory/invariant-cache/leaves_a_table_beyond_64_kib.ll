; All tables together should stay in a cache: 2048 entries of 32 bytes are just 64 KiB, one more is too many.
; RUN: kiln-opt --passes=invariant-cache %s | FileCheck %s
; RUN: kiln-opt --passes=invariant-cache --remarks %s 2>&1 | FileCheck %s --check-prefix=REMARK

; REMARK: remark: invariant-cache: not in this loop: its table would have 2049 entries of 32 bytes, which is more than 65536
; REMARK-NOT: remark:

; CHECK: as_many_as_fit: cache of 65600 bytes
; CHECK: one_more: cache of 0 bytes
; CHECK-LABEL: @as_many_as_fit(
; CHECK: kiln.invariant_cache
; CHECK-LABEL: @one_more(
; CHECK-NOT: kiln.invariant_cache
; CHECK: ret void
define void @as_many_as_fit(ptr %launch, ptr %record, ptr %frame, ptr %tables, i32 %x, i32 %lanes) {
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
  %is_last = icmp eq i64 %next, 2048
  br i1 %is_last, label %exit, label %loop
exit:
  store <8 x float> %sum.next, ptr %record
  ret void
}

define void @one_more(ptr %launch, ptr %record, ptr %frame, ptr %tables, i32 %x, i32 %lanes) {
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
  %is_last = icmp eq i64 %next, 2049
  br i1 %is_last, label %exit, label %loop
exit:
  store <8 x float> %sum.next, ptr %record
  ret void
}

!0 = !{}
