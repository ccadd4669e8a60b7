; 128 threads copy a tile of 64 by 32 halves, in rows of 40: neighbours copy adjacent elements. A thread gets eight of
; them, of a row that one iteration of eight copied: the threads of four groups, from 0, 8, 16 and 24 on.
; RUN: kiln-opt --passes=threadgroup-copies --threads=128,1,1 %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@tile = internal addrspace(3) global [2560 x half] poison, align 16

@floats = internal addrspace(3) global [2560 x float] poison, align 16

; CHECK-LABEL: @rows(
; CHECK: %[[X:.*]] = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
; CHECK: %[[GROUP:.*]] = urem i32 %[[X]], 16
; CHECK: %[[FIRST:.*]] = mul nuw i32 %[[GROUP]], 8
; CHECK: %[[ROUND:.*]] = udiv i32 %[[X]], 16
; CHECK: loop.vectors:
; CHECK: %[[COUNT:.*]] = phi i32 [ 0, %entry ], [ %[[NEXT:.*]], %loop.vectors ]
; CHECK: add i32 %[[ROUND]], %[[COUNT]]
; CHECK: %[[VALUE:.*]] = load <4 x i32>, ptr addrspace(1) %{{.*}}, align 16, !invariant.load
; CHECK: store <4 x i32> %[[VALUE]], ptr addrspace(3) %{{.*}}, align 16, {{.*}}!kiln.disjoint
; CHECK: %[[NEXT]] = add nuw i32 %[[COUNT]], 8
; CHECK: icmp ult i32 %[[NEXT]], 16
; CHECK-NOT: half
; CHECK: ret void
define void @rows(ptr addrspace(1) align 16 %x) {
entry:
  %t = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %loop
loop:
  %i = phi i32 [ %t, %entry ], [ %next, %loop ]
  %row = lshr i32 %i, 5
  %column = and i32 %i, 31
  %line = shl i32 %row, 12
  %k = or disjoint i32 %line, %column
  %k.wide = zext i32 %k to i64
  %from = getelementptr half, ptr addrspace(1) %x, i64 %k.wide
  %value = load half, ptr addrspace(1) %from, align 2, !invariant.load !0
  %begin = mul i32 %row, 40
  %j = add i32 %begin, %column
  %j.wide = zext i32 %j to i64
  %to = getelementptr [2560 x half], ptr addrspace(3) @tile, i64 0, i64 %j.wide
  store half %value, ptr addrspace(3) %to, align 2
  %next = add i32 %i, 128
  %more = icmp ult i32 %next, 2048
  br i1 %more, label %loop, label %end
end:
  call void @llvm.nvvm.barrier0()
  ret void
}

; Threadgroups of 16 by 16 threads: a row has two groups of eight halves, and z is not part of the index.
; CHECK-LABEL: @planes(
; CHECK: loop.vectors:
; CHECK: load <4 x i32>, ptr addrspace(1) %{{.*}}, align 16
; CHECK: store <4 x i32> %{{.*}}, ptr addrspace(3) %{{.*}}, align 16
define void @planes(ptr addrspace(1) align 16 %x) {
entry:
  %t = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %y = call range(i32 0, 16) i32 @llvm.nvvm.read.ptx.sreg.tid.y()
  %line = shl i32 %y, 7
  %start = or disjoint i32 %line, %t
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %round = shl i32 %i, 11
  %k = add i32 %round, %start
  %k.wide = zext i32 %k to i64
  %from = getelementptr half, ptr addrspace(1) %x, i64 %k.wide
  %value = load half, ptr addrspace(1) %from, align 2, !invariant.load !0
  %to = getelementptr half, ptr addrspace(3) @tile, i64 %k.wide
  store half %value, ptr addrspace(3) %to, align 2
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, 8
  br i1 %more, label %loop, label %end
end:
  call void @llvm.nvvm.barrier0()
  ret void
}

; A counter that no address needs begins with the result of an atomic operation, which is done once.
; CHECK-LABEL: @beside_another_counter(
; CHECK: atomicrmw
; CHECK-NOT: atomicrmw
; CHECK: store <4 x i32>
; CHECK-NOT: atomicrmw
; CHECK: ret void
define void @beside_another_counter(ptr addrspace(1) align 16 %x, ptr addrspace(1) %c) {
entry:
  %t = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr i32, ptr addrspace(1) %c, i32 %t
  %start = atomicrmw add ptr addrspace(1) %p, i32 1 monotonic
  %stop = add i32 %start, 8
  br label %loop
loop:
  %i = phi i32 [ %t, %entry ], [ %next, %loop ]
  %s = phi i32 [ %start, %entry ], [ %s.next, %loop ]
  %i.wide = zext i32 %i to i64
  %from = getelementptr float, ptr addrspace(1) %x, i64 %i.wide
  %value = load float, ptr addrspace(1) %from, align 4, !invariant.load !0
  %to = getelementptr float, ptr addrspace(3) @floats, i64 %i.wide
  store float %value, ptr addrspace(3) %to, align 4
  %next = add i32 %i, 128
  %s.next = add i32 %s, 1
  %more = icmp ne i32 %s.next, %stop
  br i1 %more, label %loop, label %end
end:
  call void @llvm.nvvm.barrier0()
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.y()
declare void @llvm.nvvm.barrier0()
!0 = !{}
