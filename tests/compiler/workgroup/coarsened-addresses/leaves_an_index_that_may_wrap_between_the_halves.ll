; An index that begins at another number than a multiple of 64, or of which that is not known, may wrap between the
; halves; and one that grows twice as fast is not at the half offset.
; RUN: kiln-opt --passes=coarsened-addresses %s | FileCheck %s

; CHECK-LABEL: @from_32_on(
; CHECK: positions:
; CHECK-NOT: getelementptr
; CHECK: halves:
; CHECK: %index.wide = {{[sz]}}ext i32 %index to i64
; CHECK: %address = getelementptr float, ptr %data, i64 %index.wide
; CHECK: %value = load <32 x float>, ptr %address
define void @from_32_on(ptr %launch, ptr %record, i32 %count, ptr %data, ptr %out) {
entry:
  br label %positions
positions:
  %x = phi i32 [ 0, %entry ], [ %x.next, %next ]
  br label %halves
halves:
  %half = phi i32 [ 0, %positions ], [ %half.next, %halves ]
  %later = add i32 %x, 32
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

; CHECK-LABEL: @unknown_start(
; CHECK: positions:
; CHECK-NOT: getelementptr
; CHECK: halves:
; CHECK: %index.wide = {{[sz]}}ext i32 %index to i64
; CHECK: %address = getelementptr float, ptr %data, i64 %index.wide
; CHECK: %value = load <32 x float>, ptr %address
define void @unknown_start(ptr %launch, ptr %record, i32 %count, ptr %data, ptr %out, i32 %start) {
entry:
  br label %positions
positions:
  %x = phi i32 [ 0, %entry ], [ %x.next, %next ]
  br label %halves
halves:
  %half = phi i32 [ 0, %positions ], [ %half.next, %halves ]
  %later = add i32 %x, %start
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

; CHECK-LABEL: @twice_as_fast(
; CHECK: positions:
; CHECK-NOT: getelementptr
; CHECK: halves:
; CHECK: %index.wide = {{[sz]}}ext i32 %index to i64
; CHECK: %address = getelementptr float, ptr %data, i64 %index.wide
; CHECK: %value = load <32 x float>, ptr %address
define void @twice_as_fast(ptr %launch, ptr %record, i32 %count, ptr %data, ptr %out) {
entry:
  br label %positions
positions:
  %x = phi i32 [ 0, %entry ], [ %x.next, %next ]
  br label %halves
halves:
  %half = phi i32 [ 0, %positions ], [ %half.next, %halves ]
  %twice = shl i32 %half, 1
  %index = add i32 %x, %twice
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
