; Odd threads return before the collective. A vote at the branch, among the threads of the launch, finds the others. The
; branch stays as it is.
; RUN: kiln-opt --passes=convergence-points-in-loops,thread-index,simdgroup-masks %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

declare i64 @__kiln_exchange(i32, i32, i32, ptr, i64, i64, i64) convergent
declare i32 @__kiln_value(i32)

; CHECK-LABEL: define void @some(
; CHECK: %[[MASK:.+]] = alloca i32
; CHECK: %[[LAUNCHED:.+]] = call i32 @__kiln_launched()
; CHECK: store i32 %[[LAUNCHED]], ptr %[[MASK]]
; CHECK: %[[BEFORE:.+]] = load i32, ptr %[[MASK]]
; CHECK: %[[STAY:.+]] = call i32 @llvm.nvvm.vote.ballot.sync(i32 %[[BEFORE]], i1 %{{.+}})
; CHECK: store i32 %[[STAY]], ptr %[[MASK]]
; CHECK: br i1
; CHECK: load i32, ptr %[[MASK]]
; CHECK: call i64 @__kiln_wait0(
define void @some(ptr %out, i64 %value) {
entry:
  %index = call i32 @__kiln_value(i32 18)
  %is_odd = trunc i32 %index to i1
  br i1 %is_odd, label %end, label %go
go:
  %s = call i64 @__kiln_exchange(i32 1, i32 1, i32 32, ptr null, i64 0, i64 %value, i64 5) convergent
  store i64 %s, ptr %out
  br label %end
end:
  ret void
}
