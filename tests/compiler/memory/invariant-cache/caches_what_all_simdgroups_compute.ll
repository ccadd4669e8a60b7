; In a loop with a constant trip count, what depends on the launch and the iteration alone is the same for each
; simdgroup. A loop of its own before computes it and fills a table, unless the table's flag says that it
; is filled; the loop loads it from there. 16 entries of 32 bytes lie behind 64 bytes of flags.
; RUN: kiln-opt --passes=invariant-cache %s | FileCheck %s

; CHECK: row: cache of 576 bytes
; CHECK-LABEL: @row(
; CHECK: table:
; CHECK: %[[FLAG_AT:.+]] = getelementptr inbounds i8, ptr %tables, i64 0
; CHECK: %[[FLAG:.+]] = load i32, ptr %[[FLAG_AT]]
; CHECK: %[[IS_FILLED:.+]] = icmp ne i32 %[[FLAG]], 0
; CHECK: br i1 %[[IS_FILLED]], label %enter, label %fill
; CHECK: fill:
; CHECK: %[[PART:.+]] = load <8 x float>, {{.+}} !invariant.load
; CHECK: %[[SQUARE:.+]] = fmul <8 x float> %[[PART]], %[[PART]]
; CHECK: %[[CUBE:.+]] = fmul <8 x float> %[[SQUARE]], %[[PART]]
; CHECK: store <8 x float> %[[CUBE]]
; CHECK: filled:
; CHECK: store i32 1, ptr
; CHECK: loop:
; CHECK: %[[CACHED:.+]] = load <8 x float>, {{.+}} !kiln.invariant_cache
; CHECK-NOT: !invariant.load
; CHECK: %product = fmul <8 x float> %row, %[[CACHED]]
define void @row(ptr %launch, ptr %record, ptr %frame, ptr %tables, i32 %x, i32 %lanes) {
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

!0 = !{}
