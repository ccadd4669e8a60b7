; The table of a loop whose trip count is not known has no known size.
; RUN: kiln-opt --passes=invariant-cache %s | FileCheck %s
; RUN: kiln-opt --passes=invariant-cache --remarks %s 2>&1 | FileCheck %s --check-prefix=REMARK

; REMARK: remark: invariant-cache: not in this loop: how often it runs is not known; 2 of its vector operations give the same in all threadgroups
; REMARK-NOT: remark:

; CHECK: unknown_trip_count: cache of 0 bytes
; CHECK-LABEL: @unknown_trip_count(
; CHECK-NOT: fill:
; CHECK: ret void
define void @unknown_trip_count(ptr %launch, ptr %record, ptr %frame, ptr %tables, i32 %x, i32 %lanes, i64 %count) {
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
  %is_last = icmp eq i64 %next, %count
  br i1 %is_last, label %exit, label %loop
exit:
  store <8 x float> %sum.next, ptr %record
  ret void
}

!0 = !{}
