; Two halves are 0 and 32 threads into their 64. A loop that goes on to 64, or an outer loop in steps of 32 threads,
; is no loop over halves.
; RUN: kiln-opt --passes=coarsened-addresses %s | FileCheck %s

; CHECK-LABEL: @three_parts(
; CHECK: positions:
; CHECK-NOT: getelementptr
; CHECK: halves:
; CHECK: %index.wide = {{[sz]}}ext i32 %index to i64
; CHECK: %address = getelementptr float, ptr %data, i64 %index.wide
; CHECK: %value = load <32 x float>, ptr %address
define void @three_parts(ptr %launch, ptr %record, i32 %count, ptr %data, ptr %out) {
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
  %is_first = icmp ult i32 %half.next, 96
  br i1 %is_first, label %halves, label %next
next:
  %x.next = add i32 %x, 64
  %more = icmp ult i32 %x.next, %count
  br i1 %more, label %positions, label %exit
exit:
  ret void
}

; CHECK-LABEL: @steps_of_32(
; CHECK: positions:
; CHECK-NOT: getelementptr
; CHECK: halves:
; CHECK: %index.wide = {{[sz]}}ext i32 %index to i64
; CHECK: %address = getelementptr float, ptr %data, i64 %index.wide
; CHECK: %value = load <32 x float>, ptr %address
define void @steps_of_32(ptr %launch, ptr %record, i32 %count, ptr %data, ptr %out) {
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
  %x.next = add i32 %x, 32
  %more = icmp ult i32 %x.next, %count
  br i1 %more, label %positions, label %exit
exit:
  ret void
}
