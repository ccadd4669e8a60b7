; A shuffle, a ballot and a barrier are an instruction each. A lane that is no thread of the launch counts as 0 in a
; shuffle.
; RUN: kiln-opt --passes=convergence-points-in-loops,thread-index,simdgroup-masks,simdgroup-collectives --function=shuffle %s | FileCheck %s --check-prefix=SHUFFLE
; RUN: kiln-opt --passes=convergence-points-in-loops,thread-index,simdgroup-masks,simdgroup-collectives --function=ballot %s | FileCheck %s --check-prefix=BALLOT
; RUN: kiln-opt --passes=convergence-points-in-loops,thread-index,simdgroup-masks,simdgroup-collectives --function=barrier %s | FileCheck %s --check-prefix=BARRIER

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

declare i64 @__kiln_exchange(i32, i32, i32, ptr, i64, i64, i64) convergent
declare void @__kiln_threadgroup_barrier(i32) convergent

; SHUFFLE-LABEL: define i64 @shuffle(
; SHUFFLE: %[[LAUNCHED:.+]] = call i32 @__kiln_launched()
; SHUFFLE-NOT: @__kiln_wait
; SHUFFLE: call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %value, i32 %{{.+}}, i32 31)
; SHUFFLE: lshr i32 %[[LAUNCHED]],
; SHUFFLE: select i1
; SHUFFLE: ret i64
define i64 @shuffle(i32 %value, i64 %lane) {
  %wide = zext i32 %value to i64
  %r = call i64 @__kiln_exchange(i32 1, i32 1, i32 32, ptr null, i64 0, i64 %wide, i64 %lane) convergent
  ret i64 %r
}

; BALLOT-LABEL: define i64 @ballot(
; BALLOT: %[[SET:.+]] = icmp ne i64 %value, 0
; BALLOT: call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 %[[SET]])
define i64 @ballot(i64 %value) {
  %r = call i64 @__kiln_exchange(i32 1, i32 2, i32 32, ptr null, i64 0, i64 %value, i64 0) convergent
  ret i64 %r
}

; BARRIER-LABEL: define void @barrier(
; BARRIER: call void @llvm.nvvm.barrier0()
; BARRIER-NOT: @__kiln_wait
; BARRIER: ret void
define void @barrier() {
  call void @__kiln_threadgroup_barrier(i32 1) convergent
  ret void
}
