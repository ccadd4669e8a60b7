; Borders: as many adjacent elements as all conditions allow. Floats make vectors of four; a base that is aligned to 8
; bytes, vectors of two; four iterations of halves, vectors of four; an odd row, none.
; RUN: kiln-opt --passes=threadgroup-copies --threads=128,1,1 %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@tile = internal addrspace(3) global [2560 x float] poison, align 16

; CHECK-LABEL: @floats(
; CHECK: store <4 x i32> %{{.*}}, ptr addrspace(3) %{{.*}}, align 16
define void @floats(ptr addrspace(1) align 16 %x) {
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
  call void @llvm.nvvm.barrier0()
  ret void
}

; CHECK-LABEL: @aligned_to_8(
; CHECK: store <2 x i32> %{{.*}}, ptr addrspace(3) %{{.*}}, align 8
define void @aligned_to_8(ptr addrspace(1) align 8 %x) {
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
  call void @llvm.nvvm.barrier0()
  ret void
}

; CHECK-LABEL: @four_iterations(
; CHECK: store <2 x i32> %{{.*}}, ptr addrspace(3) %{{.*}}, align 8
define void @four_iterations(ptr addrspace(1) align 16 %x) {
entry:
  %t = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %loop
loop:
  %i = phi i32 [ %t, %entry ], [ %next, %loop ]
  %i.wide = zext i32 %i to i64
  %from = getelementptr half, ptr addrspace(1) %x, i64 %i.wide
  %value = load half, ptr addrspace(1) %from, align 2, !invariant.load !0
  %to = getelementptr half, ptr addrspace(3) @tile, i64 %i.wide
  store half %value, ptr addrspace(3) %to, align 2
  %next = add i32 %i, 128
  %more = icmp ult i32 %next, 512
  br i1 %more, label %loop, label %end
end:
  call void @llvm.nvvm.barrier0()
  ret void
}

; Rows of 33 elements: the second one begins where no vector may.
; CHECK-LABEL: @odd_rows(
; CHECK-NOT: loop.vectors
; CHECK: store float
define void @odd_rows(ptr addrspace(1) align 16 %x) {
entry:
  %t = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %loop
loop:
  %i = phi i32 [ %t, %entry ], [ %next, %loop ]
  %i.wide = zext i32 %i to i64
  %from = getelementptr float, ptr addrspace(1) %x, i64 %i.wide
  %value = load float, ptr addrspace(1) %from, align 4, !invariant.load !0
  %row = lshr i32 %i, 5
  %column = and i32 %i, 31
  %begin = mul i32 %row, 33
  %j = add i32 %begin, %column
  %j.wide = zext i32 %j to i64
  %to = getelementptr float, ptr addrspace(3) @tile, i64 %j.wide
  store float %value, ptr addrspace(3) %to, align 4
  %next = add i32 %i, 128
  %more = icmp ult i32 %next, 1024
  br i1 %more, label %loop, label %end
end:
  call void @llvm.nvvm.barrier0()
  ret void
}

; The last iteration has fewer threads than the others: 1,000 elements.
; CHECK-LABEL: @uneven(
; CHECK-NOT: loop.vectors
; CHECK: store float
define void @uneven(ptr addrspace(1) align 16 %x) {
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
  %more = icmp ult i32 %next, 1000
  br i1 %more, label %loop, label %end
end:
  call void @llvm.nvvm.barrier0()
  ret void
}

; x % 4 is not adjacent where a group of eight begins, but is in one of four.
; CHECK-LABEL: @narrow_rows(
; CHECK: store <4 x i32> %{{.*}}, ptr addrspace(3) %{{.*}}, align 16
define void @narrow_rows(ptr addrspace(1) align 16 %x) {
entry:
  %t = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %loop
loop:
  %i = phi i32 [ %t, %entry ], [ %next, %loop ]
  %i.wide = zext i32 %i to i64
  %from = getelementptr float, ptr addrspace(1) %x, i64 %i.wide
  %value = load float, ptr addrspace(1) %from, align 4, !invariant.load !0
  %column = and i32 %i, 3
  %part = lshr i32 %i, 2
  %begin = mul i32 %part, 8
  %j = add i32 %begin, %column
  %j.wide = zext i32 %j to i64
  %to = getelementptr float, ptr addrspace(3) @tile, i64 %j.wide
  store float %value, ptr addrspace(3) %to, align 4
  %next = add i32 %i, 128
  %more = icmp ult i32 %next, 1024
  br i1 %more, label %loop, label %end
end:
  call void @llvm.nvvm.barrier0()
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier0()
!0 = !{}
