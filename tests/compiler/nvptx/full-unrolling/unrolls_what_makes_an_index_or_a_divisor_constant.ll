; A loop whose counter indexes a private array, and a loop whose counter is a divisor, are marked. The trip count of the
; inner one of two loops depends on the outer one, so both are. An index that is also computed from something else, a loop
; of unknown length and a large array gain nothing.
; RUN: kiln-opt --passes=full-unrolling %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: @array(
; CHECK: br i1 %more, label %loop, label %end, !llvm.loop ![[FULL:[0-9]+]]
define void @array(float %x) {
entry:
  %a = alloca [8 x float]
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %j = zext i32 %i to i64
  %p = getelementptr [8 x float], ptr %a, i64 0, i64 %j
  store float %x, ptr %p
  %next = add nuw nsw i32 %i, 1
  %more = icmp ult i32 %next, 8
  br i1 %more, label %loop, label %end
end:
  ret void
}

; CHECK-LABEL: @divisor(
; CHECK: br i1 %again, label %inner, label %after, !llvm.loop ![[INNER:[0-9]+]]
; CHECK: br i1 %more, label %outer, label %end, !llvm.loop ![[OUTER:[0-9]+]]
define void @divisor(i32 %t, ptr %out) {
entry:
  br label %outer
outer:
  %k = phi i32 [ 2, %entry ], [ %double, %after ]
  %start = lshr i32 %k, 1
  br label %inner
inner:
  %j = phi i32 [ %start, %outer ], [ %half, %inner ]
  %q = udiv i32 %t, %j
  store volatile i32 %q, ptr %out
  %half = lshr i32 %j, 1
  %again = icmp ne i32 %half, 0
  br i1 %again, label %inner, label %after
after:
  %double = shl nuw nsw i32 %k, 1
  %more = icmp ult i32 %double, 65
  br i1 %more, label %outer, label %end
end:
  ret void
}

; CHECK-LABEL: @not_known(
; CHECK: br i1 %more, label %loop, label %end{{$}}
define void @not_known(float %x, i64 %from) {
entry:
  %a = alloca [8 x float]
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %j = zext i32 %i to i64
  %k = add i64 %j, %from
  %p = getelementptr [8 x float], ptr %a, i64 0, i64 %k
  store float %x, ptr %p
  %next = add nuw nsw i32 %i, 1
  %more = icmp ult i32 %next, 8
  br i1 %more, label %loop, label %end
end:
  ret void
}

; CHECK-LABEL: @unknown_length(
; CHECK: br i1 %more, label %loop, label %end{{$}}
define void @unknown_length(float %x, i32 %n) {
entry:
  %a = alloca [8 x float]
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %j = zext i32 %i to i64
  %p = getelementptr [8 x float], ptr %a, i64 0, i64 %j
  store float %x, ptr %p
  %next = add nuw nsw i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; CHECK-LABEL: @large(
; CHECK: br i1 %more, label %loop, label %end{{$}}
define void @large(float %x) {
entry:
  %a = alloca [129 x float]
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %j = zext i32 %i to i64
  %p = getelementptr [129 x float], ptr %a, i64 0, i64 %j
  store float %x, ptr %p
  %next = add nuw nsw i32 %i, 1
  %more = icmp ult i32 %next, 129
  br i1 %more, label %loop, label %end
end:
  ret void
}

; CHECK-DAG: ![[FULL]] = distinct !{![[FULL]], ![[HINT:[0-9]+]]}
; CHECK-DAG: ![[HINT]] = !{!"llvm.loop.unroll.full"}
; CHECK-DAG: ![[INNER]] = distinct !{![[INNER]], ![[HINT]]}
; CHECK-DAG: ![[OUTER]] = distinct !{![[OUTER]], ![[HINT]]}
