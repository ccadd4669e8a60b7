; Of two loops the outer one is versioned where that hoists every check. Where the inner one's row is loaded, the inner
; one is. A check that cannot be hoisted stays in both versions.
; RUN: kiln-opt --passes=guarded-loop-versioning %s | FileCheck %s

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer, align 64

; CHECK-LABEL: @matrix(
; CHECK: br i1 %{{.*}}, label %entry.split, label %entry.split.slow
; CHECK: outer.slow:
; CHECK: inner.slow:
; CHECK: select
; CHECK: inner:
; CHECK-NOT: select
; CHECK: ret float
define float @matrix(ptr %x, i64 %first) {
entry:
  br label %outer
outer:
  %j = phi i64 [ 0, %entry ], [ %j.next, %latch ]
  %before = phi float [ 0.0, %entry ], [ %total, %latch ]
  %row = mul nuw nsw i64 %j, 100
  br label %inner
inner:
  %k = phi i64 [ 0, %outer ], [ %next, %inner ]
  %sum = phi float [ %before, %outer ], [ %total, %inner ]
  %in.row = add nuw nsw i64 %row, %k
  %i = add i64 %first, %in.row
  %address = getelementptr float, ptr %x, i64 %i
  %inside = icmp ult i64 %i, 77777
  %guarded = select i1 %inside, ptr %address, ptr @__kiln_zeros.64
  %value = load float, ptr %guarded
  %total = fadd float %sum, %value
  %next = add nuw nsw i64 %k, 1
  %more = icmp ult i64 %next, 100
  br i1 %more, label %inner, label %latch
latch:
  %j.next = add nuw nsw i64 %j, 1
  %again = icmp ult i64 %j.next, 100
  br i1 %again, label %outer, label %end
end:
  ret float %total
}

; CHECK-LABEL: @rows_of_a_table(
; CHECK: outer:
; CHECK: select i1 %row.inside, ptr %row.address, ptr @__kiln_zeros.64
; CHECK: inner.slow:
; CHECK: inner:
; CHECK-NOT: select
; CHECK: ret float
define float @rows_of_a_table(ptr %x, ptr %table, i64 %end) {
entry:
  br label %outer
outer:
  %j = phi i64 [ %end, %entry ], [ %row, %latch ]
  %before = phi float [ 0.0, %entry ], [ %total, %latch ]
  %row.address = getelementptr i64, ptr %table, i64 %j
  %row.inside = icmp ult i64 %j, 777
  %row.guarded = select i1 %row.inside, ptr %row.address, ptr @__kiln_zeros.64
  %row = load i64, ptr %row.guarded
  br label %inner
inner:
  %k = phi i64 [ 0, %outer ], [ %next, %inner ]
  %sum = phi float [ %before, %outer ], [ %total, %inner ]
  %i = add i64 %row, %k
  %address = getelementptr float, ptr %x, i64 %i
  %inside = icmp ult i64 %i, 77777
  %guarded = select i1 %inside, ptr %address, ptr @__kiln_zeros.64
  %value = load float, ptr %guarded
  %total = fadd float %sum, %value
  %next = add nuw nsw i64 %k, 1
  %more = icmp ult i64 %next, 100
  br i1 %more, label %inner, label %latch
latch:
  %again = icmp ne i64 %row, 0
  br i1 %again, label %outer, label %end.of.loop
end.of.loop:
  ret float %total
}
