; Where paths of an iteration join, structured control flow leaves phis of one value. A counter through such a phi is a
; counter still. Through a phi of two values it is none, and neither is the value with which a loop of two exits was left.
; RUN: kiln-opt --passes=full-unrolling %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: @one_value(
; CHECK: br i1 %more, label %loop, label %end, !llvm.loop
define void @one_value(float %x, i1 %side) {
entry:
  %a = alloca [8 x float]
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %meet ]
  %j = zext i32 %i to i64
  %p = getelementptr [8 x float], ptr %a, i64 0, i64 %j
  store float %x, ptr %p
  br i1 %side, label %then, label %meet
then:
  br label %meet
meet:
  %same = phi i32 [ %i, %loop ], [ %i, %then ]
  %next = add nuw nsw i32 %same, 1
  %more = icmp ult i32 %next, 8
  br i1 %more, label %loop, label %end
end:
  ret void
}

; CHECK-LABEL: @two_values(
; CHECK: br i1 %more, label %loop, label %end{{$}}
define void @two_values(float %x, i1 %side, i32 %other) {
entry:
  %a = alloca [8 x float]
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %meet ]
  %j = zext i32 %i to i64
  %p = getelementptr [8 x float], ptr %a, i64 0, i64 %j
  store float %x, ptr %p
  br i1 %side, label %then, label %meet
then:
  br label %meet
meet:
  %one = phi i32 [ %i, %loop ], [ %other, %then ]
  %next = add nuw nsw i32 %one, 1
  %more = icmp ult i32 %next, 8
  br i1 %more, label %loop, label %end
end:
  ret void
}

; CHECK-LABEL: @left_by_two_exits(
; CHECK: br i1 %more, label %loop, label %end{{$}}
define void @left_by_two_exits(float %x, float %limit) {
entry:
  %a = alloca [8 x float]
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %again ]
  %found = fcmp ogt float %x, %limit
  br i1 %found, label %end, label %again
again:
  %next = add nuw nsw i32 %i, 1
  %more = icmp ult i32 %next, 8
  br i1 %more, label %loop, label %end
end:
  %last = phi i32 [ %i, %loop ], [ %i, %again ]
  br label %outer
outer:
  %k = phi i32 [ 0, %end ], [ %later, %outer ]
  %j = zext i32 %last to i64
  %p = getelementptr [8 x float], ptr %a, i64 0, i64 %j
  store volatile float %x, ptr %p
  %later = add nuw nsw i32 %k, 1
  %most = icmp ult i32 %later, 1000
  br i1 %most, label %outer, label %done
done:
  ret void
}
