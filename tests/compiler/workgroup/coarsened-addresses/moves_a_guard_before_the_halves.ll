; A bounds guard that holds for both halves selects between the first half's address and zeros before the loop. As the
; zeros get the same offset, they are larger by what it adds. A guard that differs between the halves stays in the
; loop.
; RUN: kiln-opt --passes=coarsened-addresses %s | FileCheck %s

@__kiln_zeros.128 = internal constant [128 x i8] zeroinitializer

; CHECK: @__kiln_zeros.256 = internal constant [256 x i8] zeroinitializer

; CHECK-LABEL: @for_both(
; CHECK: positions:
; CHECK: %[[FIRST:.+]] = getelementptr float, ptr %data, i64
; CHECK: %[[GUARDED:.+]] = select i1 %is_inside, ptr %[[FIRST]], ptr @__kiln_zeros.256
; CHECK: halves:
; CHECK: %[[HALF:.+]] = zext i32 %half to i64
; CHECK: %[[ADDRESS:.+]] = getelementptr float, ptr %[[GUARDED]], i64 %[[HALF]]
; CHECK: %value = load <32 x float>, ptr %[[ADDRESS]]
define void @for_both(ptr %launch, ptr %record, i32 %count, ptr %data, ptr %out, i32 %limit) {
entry:
  br label %positions
positions:
  %x = phi i32 [ 0, %entry ], [ %x.next, %next ]
  %is_inside = icmp ult i32 %x, %limit
  br label %halves
halves:
  %half = phi i32 [ 0, %positions ], [ %half.next, %halves ]
  %index = add i32 %x, %half
  %index.wide = zext i32 %index to i64
  %address = getelementptr float, ptr %data, i64 %index.wide
  %guarded = select i1 %is_inside, ptr %address, ptr @__kiln_zeros.128
  %value = load <32 x float>, ptr %guarded, align 4
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

; CHECK-LABEL: @for_each(
; CHECK: halves:
; CHECK: %[[ADDRESS:.+]] = getelementptr float, ptr %{{.+}}, i64
; CHECK: %guarded = select i1 %is_inside, ptr %{{.+}}, ptr @__kiln_zeros.128
; CHECK: %value = load <32 x float>, ptr %guarded
define void @for_each(ptr %launch, ptr %record, i32 %count, ptr %data, ptr %out, i32 %limit) {
entry:
  br label %positions
positions:
  %x = phi i32 [ 0, %entry ], [ %x.next, %next ]
  br label %halves
halves:
  %half = phi i32 [ 0, %positions ], [ %half.next, %halves ]
  %index = add i32 %x, %half
  %index.wide = zext i32 %index to i64
  %address = getelementptr float, ptr %data, i64 %index.wide
  %is_inside = icmp ult i32 %index, %limit
  %guarded = select i1 %is_inside, ptr %address, ptr @__kiln_zeros.128
  %value = load <32 x float>, ptr %guarded, align 4
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
