; Half of a thread's registers, 128 floats, is the largest array whose loop is marked.
; RUN: kiln-opt --passes=full-unrolling %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: @floats_128(
; CHECK: br i1 %more, label %loop, label %end, !llvm.loop !
define void @floats_128(float %x) {
entry:
  %a = alloca [128 x float]
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %j = zext i32 %i to i64
  %p = getelementptr [128 x float], ptr %a, i64 0, i64 %j
  store float %x, ptr %p
  %next = add nuw nsw i32 %i, 1
  %more = icmp ult i32 %next, 128
  br i1 %more, label %loop, label %end
end:
  ret void
}

; CHECK-LABEL: @floats_129(
; CHECK: br i1 %more, label %loop, label %end{{$}}
define void @floats_129(float %x) {
entry:
  %a = alloca [129 x float]
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %j = zext i32 %i to i64
  %p = getelementptr [129 x float], ptr %a, i64 0, i64 %j
  store float %x, ptr %p
  %next = add nuw nsw i32 %i, 1
  %more = icmp ult i32 %next, 128
  br i1 %more, label %loop, label %end
end:
  ret void
}
