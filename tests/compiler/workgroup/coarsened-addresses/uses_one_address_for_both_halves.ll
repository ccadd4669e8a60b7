; The halves' index is a multiple of 64 and the half offset, 0 or 32, so their sum does not wrap. The first half's
; address is computed before the loop over the halves, and each half adds its offset. The same holds for a signed
; index, and for one that is another multiple of 64 further on.
; RUN: kiln-opt --passes=coarsened-addresses %s | FileCheck %s

; CHECK-LABEL: @unsigned(
; CHECK: positions:
; CHECK: %[[WIDE:.+]] = zext i32 %x to i64
; CHECK: %[[FIRST:.+]] = getelementptr float, ptr %data, i64 %[[WIDE]]
; CHECK: halves:
; CHECK: %[[HALF:.+]] = zext i32 %half to i64
; CHECK: %[[ADDRESS:.+]] = getelementptr float, ptr %[[FIRST]], i64 %[[HALF]]
; CHECK: %value = load <32 x float>, ptr %[[ADDRESS]]
define void @unsigned(ptr %launch, ptr %record, i32 %count, ptr %data, ptr %out) {
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

; CHECK-LABEL: @signed(
; CHECK: positions:
; CHECK: %[[WIDE:.+]] = sext i32 %x to i64
; CHECK: %[[FIRST:.+]] = getelementptr float, ptr %data, i64 %[[WIDE]]
; CHECK: halves:
; CHECK: %[[HALF:.+]] = zext i32 %half to i64
; CHECK: %[[ADDRESS:.+]] = getelementptr float, ptr %[[FIRST]], i64 %[[HALF]]
; CHECK: %value = load <32 x float>, ptr %[[ADDRESS]]
define void @signed(ptr %launch, ptr %record, i32 %count, ptr %data, ptr %out) {
entry:
  br label %positions
positions:
  %x = phi i32 [ 0, %entry ], [ %x.next, %next ]
  br label %halves
halves:
  %half = phi i32 [ 0, %positions ], [ %half.next, %halves ]
  %index = add i32 %x, %half
  %index.wide = sext i32 %index to i64
  %address = getelementptr float, ptr %data, i64 %index.wide
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

; CHECK-LABEL: @further_on(
; CHECK: positions:
; CHECK: %[[WIDE:.+]] = zext i32 %[[LATER:.+]] to i64
; CHECK: %[[FIRST:.+]] = getelementptr float, ptr %data, i64 %[[WIDE]]
; CHECK: halves:
; CHECK: %[[HALF:.+]] = zext i32 %half to i64
; CHECK: %[[ADDRESS:.+]] = getelementptr float, ptr %[[FIRST]], i64 %[[HALF]]
; CHECK: %value = load <32 x float>, ptr %[[ADDRESS]]
define void @further_on(ptr %launch, ptr %record, i32 %count, ptr %data, ptr %out) {
entry:
  br label %positions
positions:
  %x = phi i32 [ 0, %entry ], [ %x.next, %next ]
  br label %halves
halves:
  %half = phi i32 [ 0, %positions ], [ %half.next, %halves ]
  %later = add i32 %x, 128
  %index = add i32 %later, %half
  %index.wide = zext i32 %index to i64
  %address = getelementptr float, ptr %data, i64 %index.wide
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
