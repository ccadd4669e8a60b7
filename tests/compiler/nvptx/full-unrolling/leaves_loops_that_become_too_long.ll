; 128 times 70 instructions are more than the 8,192 that a multiprocessor's instruction cache holds. A loop that a program
; does not want unrolled stays too.
; RUN: kiln-opt --passes=full-unrolling %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: @too_long(
; CHECK: br i1 %more, label %loop, label %end{{$}}
define void @too_long(float %x) {
entry:
  %a = alloca [128 x float]
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %j = zext i32 %i to i64
  %p = getelementptr [128 x float], ptr %a, i64 0, i64 %j
  %v0 = fadd float %x, 1.0
  %v1 = call float @llvm.fma.f32(float %v0, float %x, float 1.0)
  %v2 = call float @llvm.fma.f32(float %v1, float %x, float 1.0)
  %v3 = call float @llvm.fma.f32(float %v2, float %x, float 1.0)
  %v4 = call float @llvm.fma.f32(float %v3, float %x, float 1.0)
  %v5 = call float @llvm.fma.f32(float %v4, float %x, float 1.0)
  %v6 = call float @llvm.fma.f32(float %v5, float %x, float 1.0)
  %v7 = call float @llvm.fma.f32(float %v6, float %x, float 1.0)
  %v8 = call float @llvm.fma.f32(float %v7, float %x, float 1.0)
  %v9 = call float @llvm.fma.f32(float %v8, float %x, float 1.0)
  %v10 = call float @llvm.fma.f32(float %v9, float %x, float 1.0)
  %v11 = call float @llvm.fma.f32(float %v10, float %x, float 1.0)
  %v12 = call float @llvm.fma.f32(float %v11, float %x, float 1.0)
  %v13 = call float @llvm.fma.f32(float %v12, float %x, float 1.0)
  %v14 = call float @llvm.fma.f32(float %v13, float %x, float 1.0)
  %v15 = call float @llvm.fma.f32(float %v14, float %x, float 1.0)
  %v16 = call float @llvm.fma.f32(float %v15, float %x, float 1.0)
  %v17 = call float @llvm.fma.f32(float %v16, float %x, float 1.0)
  %v18 = call float @llvm.fma.f32(float %v17, float %x, float 1.0)
  %v19 = call float @llvm.fma.f32(float %v18, float %x, float 1.0)
  %v20 = call float @llvm.fma.f32(float %v19, float %x, float 1.0)
  %v21 = call float @llvm.fma.f32(float %v20, float %x, float 1.0)
  %v22 = call float @llvm.fma.f32(float %v21, float %x, float 1.0)
  %v23 = call float @llvm.fma.f32(float %v22, float %x, float 1.0)
  %v24 = call float @llvm.fma.f32(float %v23, float %x, float 1.0)
  %v25 = call float @llvm.fma.f32(float %v24, float %x, float 1.0)
  %v26 = call float @llvm.fma.f32(float %v25, float %x, float 1.0)
  %v27 = call float @llvm.fma.f32(float %v26, float %x, float 1.0)
  %v28 = call float @llvm.fma.f32(float %v27, float %x, float 1.0)
  %v29 = call float @llvm.fma.f32(float %v28, float %x, float 1.0)
  %v30 = call float @llvm.fma.f32(float %v29, float %x, float 1.0)
  %v31 = call float @llvm.fma.f32(float %v30, float %x, float 1.0)
  %v32 = call float @llvm.fma.f32(float %v31, float %x, float 1.0)
  %v33 = call float @llvm.fma.f32(float %v32, float %x, float 1.0)
  %v34 = call float @llvm.fma.f32(float %v33, float %x, float 1.0)
  %v35 = call float @llvm.fma.f32(float %v34, float %x, float 1.0)
  %v36 = call float @llvm.fma.f32(float %v35, float %x, float 1.0)
  %v37 = call float @llvm.fma.f32(float %v36, float %x, float 1.0)
  %v38 = call float @llvm.fma.f32(float %v37, float %x, float 1.0)
  %v39 = call float @llvm.fma.f32(float %v38, float %x, float 1.0)
  %v40 = call float @llvm.fma.f32(float %v39, float %x, float 1.0)
  %v41 = call float @llvm.fma.f32(float %v40, float %x, float 1.0)
  %v42 = call float @llvm.fma.f32(float %v41, float %x, float 1.0)
  %v43 = call float @llvm.fma.f32(float %v42, float %x, float 1.0)
  %v44 = call float @llvm.fma.f32(float %v43, float %x, float 1.0)
  %v45 = call float @llvm.fma.f32(float %v44, float %x, float 1.0)
  %v46 = call float @llvm.fma.f32(float %v45, float %x, float 1.0)
  %v47 = call float @llvm.fma.f32(float %v46, float %x, float 1.0)
  %v48 = call float @llvm.fma.f32(float %v47, float %x, float 1.0)
  %v49 = call float @llvm.fma.f32(float %v48, float %x, float 1.0)
  %v50 = call float @llvm.fma.f32(float %v49, float %x, float 1.0)
  %v51 = call float @llvm.fma.f32(float %v50, float %x, float 1.0)
  %v52 = call float @llvm.fma.f32(float %v51, float %x, float 1.0)
  %v53 = call float @llvm.fma.f32(float %v52, float %x, float 1.0)
  %v54 = call float @llvm.fma.f32(float %v53, float %x, float 1.0)
  %v55 = call float @llvm.fma.f32(float %v54, float %x, float 1.0)
  %v56 = call float @llvm.fma.f32(float %v55, float %x, float 1.0)
  %v57 = call float @llvm.fma.f32(float %v56, float %x, float 1.0)
  %v58 = call float @llvm.fma.f32(float %v57, float %x, float 1.0)
  %v59 = call float @llvm.fma.f32(float %v58, float %x, float 1.0)
  %v60 = call float @llvm.fma.f32(float %v59, float %x, float 1.0)
  %v61 = call float @llvm.fma.f32(float %v60, float %x, float 1.0)
  %v62 = call float @llvm.fma.f32(float %v61, float %x, float 1.0)
  %v63 = call float @llvm.fma.f32(float %v62, float %x, float 1.0)
  %v64 = call float @llvm.fma.f32(float %v63, float %x, float 1.0)
  %v65 = call float @llvm.fma.f32(float %v64, float %x, float 1.0)
  %v66 = call float @llvm.fma.f32(float %v65, float %x, float 1.0)
  %v67 = call float @llvm.fma.f32(float %v66, float %x, float 1.0)
  %v68 = call float @llvm.fma.f32(float %v67, float %x, float 1.0)
  %v69 = call float @llvm.fma.f32(float %v68, float %x, float 1.0)
  store float %v69, ptr %p
  %next = add nuw nsw i32 %i, 1
  %more = icmp ult i32 %next, 128
  br i1 %more, label %loop, label %end
end:
  ret void
}

; CHECK-LABEL: @disabled(
; CHECK: br i1 %more, label %loop, label %end, !llvm.loop ![[DISABLED:[0-9]+]]
define void @disabled(float %x) {
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
  br i1 %more, label %loop, label %end, !llvm.loop !0
end:
  ret void
}

declare float @llvm.fma.f32(float, float, float)

; CHECK-NOT: llvm.loop.unroll.full
; CHECK: ![[DISABLED]] = distinct !{![[DISABLED]], ![[HINT:[0-9]+]]}
; CHECK: ![[HINT]] = !{!"llvm.loop.unroll.disable"}
!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.unroll.disable"}
