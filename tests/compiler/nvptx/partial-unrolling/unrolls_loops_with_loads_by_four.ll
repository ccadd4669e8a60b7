; A loop of 400 iterations that loads is unrolled by four. One of 402 would leave two over, and one that loads nothing has
; nothing to have in flight.
; RUN: kiln-opt --passes=partial-unrolling %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: @loads_400(
; CHECK: br i1 %more, label %loop, label %end, !llvm.loop ![[LOOP:[0-9]+]]
define float @loads_400(ptr addrspace(1) %x) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %total, %loop ]
  %p = getelementptr float, ptr addrspace(1) %x, i32 %i
  %value = load float, ptr addrspace(1) %p
  %total = fadd float %sum, %value
  %next = add nuw nsw i32 %i, 1
  %more = icmp ult i32 %next, 400
  br i1 %more, label %loop, label %end
end:
  ret float %total
}

; CHECK-LABEL: @loads_402(
; CHECK: br i1 %more, label %loop, label %end{{$}}
define float @loads_402(ptr addrspace(1) %x) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %total, %loop ]
  %p = getelementptr float, ptr addrspace(1) %x, i32 %i
  %value = load float, ptr addrspace(1) %p
  %total = fadd float %sum, %value
  %next = add nuw nsw i32 %i, 1
  %more = icmp ult i32 %next, 402
  br i1 %more, label %loop, label %end
end:
  ret float %total
}

; CHECK-LABEL: @computes(
; CHECK: br i1 %more, label %loop, label %end{{$}}
define float @computes(float %x) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %total, %loop ]
  %total = call float @llvm.fma.f32(float %sum, float %x, float 1.0)
  %next = add nuw nsw i32 %i, 1
  %more = icmp ult i32 %next, 400
  br i1 %more, label %loop, label %end
end:
  ret float %total
}

declare float @llvm.fma.f32(float, float, float)

; CHECK: ![[LOOP]] = distinct !{![[LOOP]], ![[HINT:[0-9]+]]}
; CHECK: ![[HINT]] = !{!"llvm.loop.unroll.count", i32 4}
