; A loop stays as it is where it matters which thread copies an element, or where not all threads copy.
; RUN: kiln-opt --passes=threadgroup-copies --threads=128,1,1 %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@tile = internal addrspace(3) global [2560 x float] poison, align 16

; The thread reads its own element before it writes another one there.
; CHECK-LABEL: @read_before(
; CHECK-NOT: .vectors:
; CHECK: ret void
define void @read_before(ptr addrspace(1) align 16 %x, ptr addrspace(1) %y) {
entry:
  %t = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %own = getelementptr float, ptr addrspace(3) @tile, i32 %t
  %old = load float, ptr addrspace(3) %own
  store float %old, ptr addrspace(1) %y
  br label %loop
loop:
  %i = phi i32 [ %t, %entry ], [ %next, %loop ]
  %i.wide = zext i32 %i to i64
  %from = getelementptr float, ptr addrspace(1) %x, i64 %i.wide
  %value = load float, ptr addrspace(1) %from, align 4, !invariant.load !0
  %to = getelementptr float, ptr addrspace(3) @tile, i64 %i.wide
  store float %value, ptr addrspace(3) %to, align 4
  %next = add i32 %i, 128
  %more = icmp ult i32 %next, 1024
  br i1 %more, label %loop, label %end
end:
  call void @llvm.nvvm.barrier0()
  ret void
}

; The thread reads its own element before a barrier.
; CHECK-LABEL: @read_behind(
; CHECK-NOT: .vectors:
; CHECK: ret void
define void @read_behind(ptr addrspace(1) align 16 %x, ptr addrspace(1) %y) {
entry:
  %t = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %loop
loop:
  %i = phi i32 [ %t, %entry ], [ %next, %loop ]
  %i.wide = zext i32 %i to i64
  %from = getelementptr float, ptr addrspace(1) %x, i64 %i.wide
  %value = load float, ptr addrspace(1) %from, align 4, !invariant.load !0
  %to = getelementptr float, ptr addrspace(3) @tile, i64 %i.wide
  store float %value, ptr addrspace(3) %to, align 4
  %next = add i32 %i, 128
  %more = icmp ult i32 %next, 1024
  br i1 %more, label %loop, label %end
end:
  %own = getelementptr float, ptr addrspace(3) @tile, i32 %t
  %new = load float, ptr addrspace(3) %own
  store float %new, ptr addrspace(1) %y
  call void @llvm.nvvm.barrier0()
  ret void
}

; A pointer of unknown origin may point to the tile.
; CHECK-LABEL: @through_any_pointer(
; CHECK-NOT: .vectors:
; CHECK: ret void
define void @through_any_pointer(ptr addrspace(1) align 16 %x, ptr %y) {
entry:
  %t = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %loop
loop:
  %i = phi i32 [ %t, %entry ], [ %next, %loop ]
  %i.wide = zext i32 %i to i64
  %from = getelementptr float, ptr addrspace(1) %x, i64 %i.wide
  %value = load float, ptr addrspace(1) %from, align 4, !invariant.load !0
  %to = getelementptr float, ptr addrspace(3) @tile, i64 %i.wide
  store float %value, ptr addrspace(3) %to, align 4
  %next = add i32 %i, 128
  %more = icmp ult i32 %next, 1024
  br i1 %more, label %loop, label %end
end:
  store float 1.0, ptr %y
  call void @llvm.nvvm.barrier0()
  ret void
}

; No barrier follows on one of the paths.
; CHECK-LABEL: @without_a_barrier(
; CHECK-NOT: .vectors:
; CHECK: ret void
define void @without_a_barrier(ptr addrspace(1) align 16 %x, i1 %c) {
entry:
  %t = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %loop
loop:
  %i = phi i32 [ %t, %entry ], [ %next, %loop ]
  %i.wide = zext i32 %i to i64
  %from = getelementptr float, ptr addrspace(1) %x, i64 %i.wide
  %value = load float, ptr addrspace(1) %from, align 4, !invariant.load !0
  %to = getelementptr float, ptr addrspace(3) @tile, i64 %i.wide
  store float %value, ptr addrspace(3) %to, align 4
  %next = add i32 %i, 128
  %more = icmp ult i32 %next, 1024
  br i1 %more, label %loop, label %end
end:
  br i1 %c, label %wait, label %out
wait:
  call void @llvm.nvvm.barrier0()
  br label %out
out:
  ret void
}

; A part of the threads copies.
; CHECK-LABEL: @under_a_condition(
; CHECK-NOT: .vectors:
; CHECK: ret void
define void @under_a_condition(ptr addrspace(1) align 16 %x) {
entry:
  %t = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %some = icmp ult i32 %t, 64
  br i1 %some, label %begin, label %end
begin:
  br label %loop
loop:
  %i = phi i32 [ %t, %begin ], [ %next, %loop ]
  %i.wide = zext i32 %i to i64
  %from = getelementptr float, ptr addrspace(1) %x, i64 %i.wide
  %value = load float, ptr addrspace(1) %from, align 4, !invariant.load !0
  %to = getelementptr float, ptr addrspace(3) @tile, i64 %i.wide
  store float %value, ptr addrspace(3) %to, align 4
  %next = add i32 %i, 128
  %more = icmp ult i32 %next, 1024
  br i1 %more, label %loop, label %end
end:
  call void @llvm.nvvm.barrier0()
  ret void
}

; Some threads have returned.
; CHECK-LABEL: @behind_a_return(
; CHECK-NOT: .vectors:
; CHECK: ret void
define void @behind_a_return(ptr addrspace(1) align 16 %x) {
entry:
  %t = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %some = icmp ult i32 %t, 100
  br i1 %some, label %begin, label %out
begin:
  br label %loop
loop:
  %i = phi i32 [ %t, %begin ], [ %next, %loop ]
  %i.wide = zext i32 %i to i64
  %from = getelementptr float, ptr addrspace(1) %x, i64 %i.wide
  %value = load float, ptr addrspace(1) %from, align 4, !invariant.load !0
  %to = getelementptr float, ptr addrspace(3) @tile, i64 %i.wide
  store float %value, ptr addrspace(3) %to, align 4
  %next = add i32 %i, 128
  %more = icmp ult i32 %next, 1024
  br i1 %more, label %loop, label %end
end:
  call void @llvm.nvvm.barrier0()
  ret void
out:
  ret void
}

; What is copied may be written during the launch.
; CHECK-LABEL: @of_changing_memory(
; CHECK-NOT: .vectors:
; CHECK: ret void
define void @of_changing_memory(ptr addrspace(1) align 16 %x) {
entry:
  %t = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %loop
loop:
  %i = phi i32 [ %t, %entry ], [ %next, %loop ]
  %i.wide = zext i32 %i to i64
  %from = getelementptr float, ptr addrspace(1) %x, i64 %i.wide
  %value = load float, ptr addrspace(1) %from, align 4
  %to = getelementptr float, ptr addrspace(3) @tile, i64 %i.wide
  store float %value, ptr addrspace(3) %to, align 4
  %next = add i32 %i, 128
  %more = icmp ult i32 %next, 1024
  br i1 %more, label %loop, label %end
end:
  call void @llvm.nvvm.barrier0()
  ret void
}

; Each iteration writes to the thread's one element: the last one must stay.
; CHECK-LABEL: @to_one_element(
; CHECK-NOT: .vectors:
; CHECK: ret void
define void @to_one_element(ptr addrspace(1) align 16 %x) {
entry:
  %t = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %loop
loop:
  %i = phi i32 [ %t, %entry ], [ %next, %loop ]
  %i.wide = zext i32 %i to i64
  %t.wide = zext i32 %t to i64
  %from = getelementptr float, ptr addrspace(1) %x, i64 %i.wide
  %value = load float, ptr addrspace(1) %from, align 4, !invariant.load !0
  %to = getelementptr float, ptr addrspace(3) @tile, i64 %t.wide
  store float %value, ptr addrspace(3) %to, align 4
  %next = add i32 %i, 128
  %more = icmp ult i32 %next, 1024
  br i1 %more, label %loop, label %end
end:
  call void @llvm.nvvm.barrier0()
  ret void
}

; Neighbours have adjacent elements in the other order.
; CHECK-LABEL: @backwards(
; CHECK-NOT: .vectors:
; CHECK: ret void
define void @backwards(ptr addrspace(1) align 16 %x) {
entry:
  %t = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %loop
loop:
  %i = phi i32 [ %t, %entry ], [ %next, %loop ]
  %i.wide = zext i32 %i to i64
  %back = sub i64 1023, %i.wide
  %from = getelementptr float, ptr addrspace(1) %x, i64 %back
  %value = load float, ptr addrspace(1) %from, align 4, !invariant.load !0
  %to = getelementptr float, ptr addrspace(3) @tile, i64 %i.wide
  store float %value, ptr addrspace(3) %to, align 4
  %next = add i32 %i, 128
  %more = icmp ult i32 %next, 1024
  br i1 %more, label %loop, label %end
end:
  call void @llvm.nvvm.barrier0()
  ret void
}

; Elements that are not adjacent.
; CHECK-LABEL: @every_other(
; CHECK-NOT: .vectors:
; CHECK: ret void
define void @every_other(ptr addrspace(1) align 16 %x) {
entry:
  %t = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %loop
loop:
  %i = phi i32 [ %t, %entry ], [ %next, %loop ]
  %i.wide = zext i32 %i to i64
  %double = shl i64 %i.wide, 1
  %from = getelementptr float, ptr addrspace(1) %x, i64 %double
  %value = load float, ptr addrspace(1) %from, align 4, !invariant.load !0
  %to = getelementptr float, ptr addrspace(3) @tile, i64 %i.wide
  store float %value, ptr addrspace(3) %to, align 4
  %next = add i32 %i, 128
  %more = icmp ult i32 %next, 1024
  br i1 %more, label %loop, label %end
end:
  call void @llvm.nvvm.barrier0()
  ret void
}

; The lane is not the thread's x for the pass.
; CHECK-LABEL: @by_the_lane(
; CHECK-NOT: .vectors:
; CHECK: ret void
define void @by_the_lane(ptr addrspace(1) align 16 %x) {
entry:
  %t = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  br label %loop
loop:
  %i = phi i32 [ %t, %entry ], [ %next, %loop ]
  %i.wide = zext i32 %i to i64
  %k = add i32 %i, %lane
  %k.wide = zext i32 %k to i64
  %from = getelementptr float, ptr addrspace(1) %x, i64 %k.wide
  %value = load float, ptr addrspace(1) %from, align 4, !invariant.load !0
  %to = getelementptr float, ptr addrspace(3) @tile, i64 %i.wide
  store float %value, ptr addrspace(3) %to, align 4
  %next = add i32 %i, 128
  %more = icmp ult i32 %next, 1024
  br i1 %more, label %loop, label %end
end:
  call void @llvm.nvvm.barrier0()
  ret void
}

; An index that is loaded.
; CHECK-LABEL: @by_data(
; CHECK-NOT: .vectors:
; CHECK: ret void
define void @by_data(ptr addrspace(1) align 16 %x, ptr addrspace(1) %y) {
entry:
  %t = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr i32, ptr addrspace(1) %y, i32 %t
  %offset = load i32, ptr addrspace(1) %p, !invariant.load !0
  br label %loop
loop:
  %i = phi i32 [ %t, %entry ], [ %next, %loop ]
  %i.wide = zext i32 %i to i64
  %k = add i32 %i, %offset
  %k.wide = zext i32 %k to i64
  %from = getelementptr float, ptr addrspace(1) %x, i64 %k.wide
  %value = load float, ptr addrspace(1) %from, align 4, !invariant.load !0
  %to = getelementptr float, ptr addrspace(3) @tile, i64 %i.wide
  store float %value, ptr addrspace(3) %to, align 4
  %next = add i32 %i, 128
  %more = icmp ult i32 %next, 1024
  br i1 %more, label %loop, label %end
end:
  call void @llvm.nvvm.barrier0()
  ret void
}

; A counter of 8 bits comes back to the same address: the last iteration must stay.
; CHECK-LABEL: @byte_wraps(
; CHECK-NOT: .vectors:
; CHECK: ret void
define void @byte_wraps(ptr addrspace(1) align 16 %x) {
entry:
  %t = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %t8 = trunc i32 %t to i8
  br label %loop
loop:
  %i = phi i32 [ %t, %entry ], [ %next, %loop ]
  %s = phi i8 [ %t8, %entry ], [ %s.next, %loop ]
  %i.wide = zext i32 %i to i64
  %s.wide = zext i8 %s to i64
  %from = getelementptr float, ptr addrspace(1) %x, i64 %i.wide
  %value = load float, ptr addrspace(1) %from, align 4, !invariant.load !0
  %to = getelementptr float, ptr addrspace(3) @tile, i64 %s.wide
  store float %value, ptr addrspace(3) %to, align 4
  %next = add i32 %i, 128
  %s.next = add i8 %s, -128
  %more = icmp ult i32 %next, 1024
  br i1 %more, label %loop, label %end
end:
  call void @llvm.nvvm.barrier0()
  ret void
}

; So does one of 32 bits that wraps.
; CHECK-LABEL: @shifted_wraps(
; CHECK-NOT: .vectors:
; CHECK: ret void
define void @shifted_wraps(ptr addrspace(1) align 16 %x) {
entry:
  %t = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %loop
loop:
  %i = phi i32 [ %t, %entry ], [ %next, %loop ]
  %s = phi i32 [ 0, %entry ], [ %s.next, %loop ]
  %i.wide = zext i32 %i to i64
  %s.high = lshr i32 %s, 23
  %s.wide = zext i32 %s.high to i64
  %t.wide = zext i32 %t to i64
  %from = getelementptr float, ptr addrspace(1) %x, i64 %i.wide
  %value = load float, ptr addrspace(1) %from, align 4, !invariant.load !0
  %row = getelementptr float, ptr addrspace(3) @tile, i64 %s.wide
  %to = getelementptr float, ptr addrspace(3) %row, i64 %t.wide
  store float %value, ptr addrspace(3) %to, align 4
  %next = add i32 %i, 128
  %s.next = add i32 %s, 1073741824
  %more = icmp ult i32 %next, 1024
  br i1 %more, label %loop, label %end
end:
  call void @llvm.nvvm.barrier0()
  ret void
}

; The loop has two entries, and its trip count depends on them.
; CHECK-LABEL: @two_entries(
; CHECK-NOT: .vectors:
; CHECK: ret void
define void @two_entries(ptr addrspace(1) align 16 %x) {
entry:
  %t = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %u = and i32 %t, 31
  %c = icmp ult i32 %t, 64
  br i1 %c, label %left, label %right
left:
  br label %loop
right:
  br label %loop
loop:
  %i = phi i32 [ %t, %left ], [ %u, %right ], [ %next, %loop ]
  %i.wide = zext i32 %i to i64
  %from = getelementptr float, ptr addrspace(1) %x, i64 %i.wide
  %value = load float, ptr addrspace(1) %from, align 4, !invariant.load !0
  %to = getelementptr float, ptr addrspace(3) @tile, i64 %i.wide
  store float %value, ptr addrspace(3) %to, align 4
  %next = add i32 %i, 128
  %more = icmp ult i32 %next, 1024
  br i1 %more, label %loop, label %end
end:
  call void @llvm.nvvm.barrier0()
  ret void
}

; The sign of two bits of the thread's index changes within four threads, but not within two.
; CHECK-LABEL: @by_a_signed_number(
; CHECK-NOT: store <4 x i32>
; CHECK: store <2 x i32>
; CHECK: ret void
define void @by_a_signed_number(ptr addrspace(1) align 16 %x) {
entry:
  %t = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %r = trunc i32 %t to i2
  %s = sext i2 %r to i64
  %hi = and i32 %t, -4
  %base = add i32 %hi, 4
  %base.wide = zext i32 %base to i64
  br label %loop
loop:
  %j = phi i64 [ 0, %entry ], [ %next, %loop ]
  %o = add i64 %base.wide, %j
  %i.wide = add i64 %o, %s
  %from = getelementptr float, ptr addrspace(1) %x, i64 %i.wide
  %value = load float, ptr addrspace(1) %from, align 4, !invariant.load !0
  %to = getelementptr float, ptr addrspace(3) @tile, i64 %i.wide
  store float %value, ptr addrspace(3) %to, align 4
  %next = add i64 %j, 128
  %more = icmp ult i64 %next, 1024
  br i1 %more, label %loop, label %end
end:
  call void @llvm.nvvm.barrier0()
  ret void
}

; An outer loop without a barrier repeats the copies. A thread's element of one iteration goes where its element of the
; one before went: that of the last iteration must stay.
; CHECK-LABEL: @repeated_without_a_barrier(
; CHECK-NOT: .vectors:
; CHECK: ret void
define void @repeated_without_a_barrier(ptr addrspace(1) align 16 %x) {
entry:
  %t = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %outer
outer:
  %k = phi i64 [ 0, %entry ], [ %k.next, %latch ]
  br label %loop
loop:
  %i = phi i32 [ %t, %outer ], [ %next, %loop ]
  %i.wide = zext i32 %i to i64
  %from = getelementptr float, ptr addrspace(1) %x, i64 %i.wide
  %value = load float, ptr addrspace(1) %from, align 4, !invariant.load !0
  %shift = shl i64 %k, 7
  %j = add i64 %i.wide, %shift
  %to = getelementptr float, ptr addrspace(3) @tile, i64 %j
  store float %value, ptr addrspace(3) %to, align 4
  %next = add i32 %i, 128
  %more = icmp ult i32 %next, 1024
  br i1 %more, label %loop, label %latch
latch:
  %k.next = add i64 %k, 1
  %k.more = icmp ult i64 %k.next, 3
  br i1 %k.more, label %outer, label %end
end:
  call void @llvm.nvvm.barrier0()
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.laneid()
declare void @llvm.nvvm.barrier0()
!0 = !{}
