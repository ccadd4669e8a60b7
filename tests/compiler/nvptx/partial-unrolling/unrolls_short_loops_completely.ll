; A loop of eight short iterations is unrolled completely, with or without loads, and so is the loop around it while both
; are short. A long one is not, nor one whose hint says so.
; RUN: kiln-opt --passes=partial-unrolling %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: @nest(
; CHECK: br i1 %more, label %inner, label %latch, !llvm.loop ![[INNER:[0-9]+]]
; CHECK: br i1 %again, label %outer, label %end, !llvm.loop ![[OUTER:[0-9]+]]
define float @nest(float %x) {
entry:
  br label %outer
outer:
  %j = phi i32 [ 0, %entry ], [ %j.next, %latch ]
  %s = phi float [ 0.0, %entry ], [ %total, %latch ]
  br label %inner
inner:
  %i = phi i32 [ 0, %outer ], [ %next, %inner ]
  %sum = phi float [ %s, %outer ], [ %total, %inner ]
  %total = call float @llvm.fma.f32(float %sum, float %x, float 1.0)
  %next = add nuw nsw i32 %i, 1
  %more = icmp ult i32 %next, 8
  br i1 %more, label %inner, label %latch
latch:
  %j.next = add nuw nsw i32 %j, 1
  %again = icmp ult i32 %j.next, 4
  br i1 %again, label %outer, label %end
end:
  ret float %total
}

; CHECK-LABEL: @many(
; CHECK: br i1 %more, label %loop, label %end{{$}}
define float @many(float %x) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %total, %loop ]
  %total = call float @llvm.fma.f32(float %sum, float %x, float 1.0)
  %next = add nuw nsw i32 %i, 1
  %more = icmp ult i32 %next, 65
  br i1 %more, label %loop, label %end
end:
  ret float %total
}

; CHECK-LABEL: @refused(
; CHECK: br i1 %more, label %loop, label %end, !llvm.loop ![[KEPT:[0-9]+]]
define float @refused(float %x) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %total, %loop ]
  %total = call float @llvm.fma.f32(float %sum, float %x, float 1.0)
  %next = add nuw nsw i32 %i, 1
  %more = icmp ult i32 %next, 8
  br i1 %more, label %loop, label %end, !llvm.loop !0
end:
  ret float %total
}

declare float @llvm.fma.f32(float, float, float)

!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.unroll.disable"}

; CHECK-DAG: ![[INNER]] = distinct !{![[INNER]], ![[FULL:[0-9]+]]}
; CHECK-DAG: ![[OUTER]] = distinct !{![[OUTER]], ![[FULL]]}
; CHECK-DAG: ![[FULL]] = !{!"llvm.loop.unroll.full"}
