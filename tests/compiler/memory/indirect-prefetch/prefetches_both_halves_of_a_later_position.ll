; In a loop over coarsened threads the lines of both halves are prefetched once, before the loop over the halves:
; those of 256 bytes, and one more as they need not begin at a line. The launch says into which cache.
; RUN: kiln-opt --passes=indirect-prefetch %s | FileCheck %s

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer

; CHECK-LABEL: @positions(
; CHECK: %[[ASKS_AT:.+]] = getelementptr i8, ptr %launch, i64 48
; CHECK: %[[ASKS:.+]] = load i32, ptr %[[ASKS_AT]]
; CHECK: %[[SECOND:.+]] = icmp ne i32 %[[ASKS]], 0
; CHECK: add i32 %x, 512
; CHECK: br i1 %[[SECOND]], label
; CHECK-COUNT-5: call void @llvm.prefetch.p0({{.+}}, i32 0, i32 2, i32 1)
; CHECK-NOT: call void @llvm.prefetch
; CHECK: br label
; CHECK-COUNT-5: call void @llvm.prefetch.p0({{.+}}, i32 0, i32 3, i32 1)
; CHECK-NOT: call void @llvm.prefetch
; CHECK: halves:
; CHECK-NOT: call void @llvm.prefetch
; CHECK: ret void
define void @positions(ptr %launch, ptr %record, i32 %count, ptr %table, ptr %rows, ptr %out) {
entry:
  br label %positions
positions:
  %x = phi i32 [ 0, %entry ], [ %x.next, %next ]
  %position = lshr i32 %x, 6
  %is_inside = icmp ult i32 %position, 4096
  %position.wide = zext i32 %position to i64
  %entry.at = getelementptr i32, ptr %table, i64 %position.wide
  %guarded = select i1 %is_inside, ptr %entry.at, ptr @__kiln_zeros.64
  %row.number = load i32, ptr %guarded, align 4, !invariant.load !0
  br label %before
before:
  br label %halves
halves:
  %half = phi i32 [ 0, %before ], [ %half.next, %halves ]
  %element = add i32 %row.number, %half
  %element.wide = sext i32 %element to i64
  %address = getelementptr float, ptr %rows, i64 %element.wide
  %value = load <32 x float>, ptr %address, align 4
  store volatile <32 x float> %value, ptr %out, align 4
  %half.next = add nuw nsw i32 %half, 32
  %is_first = icmp ult i32 %half.next, 64
  br i1 %is_first, label %halves, label %next
next:
  %x.next = add i32 %x, 64
  %more = icmp ult i32 %x.next, %count
  br i1 %more, label %positions, label %exit
exit:
  ret void
}

!0 = !{}
