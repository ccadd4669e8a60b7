; A body of 64 instructions is the longest that is repeated: 61 products, a load, a sum, and the counter's comparison.
; What all threads execute together is not repeated: its loop stays one.
; RUN: kiln-opt --passes=partial-unrolling %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: @products_61(
; CHECK: br i1 %more, label %loop, label %end, !llvm.loop !
define float @products_61(ptr addrspace(1) %x) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %total, %loop ]
  %p = getelementptr float, ptr addrspace(1) %x, i32 %i
  %v0 = load float, ptr addrspace(1) %p
  %v1 = call float @llvm.fma.f32(float %v0, float %sum, float 1.0)
  %v2 = call float @llvm.fma.f32(float %v1, float %sum, float 1.0)
  %v3 = call float @llvm.fma.f32(float %v2, float %sum, float 1.0)
  %v4 = call float @llvm.fma.f32(float %v3, float %sum, float 1.0)
  %v5 = call float @llvm.fma.f32(float %v4, float %sum, float 1.0)
  %v6 = call float @llvm.fma.f32(float %v5, float %sum, float 1.0)
  %v7 = call float @llvm.fma.f32(float %v6, float %sum, float 1.0)
  %v8 = call float @llvm.fma.f32(float %v7, float %sum, float 1.0)
  %v9 = call float @llvm.fma.f32(float %v8, float %sum, float 1.0)
  %v10 = call float @llvm.fma.f32(float %v9, float %sum, float 1.0)
  %v11 = call float @llvm.fma.f32(float %v10, float %sum, float 1.0)
  %v12 = call float @llvm.fma.f32(float %v11, float %sum, float 1.0)
  %v13 = call float @llvm.fma.f32(float %v12, float %sum, float 1.0)
  %v14 = call float @llvm.fma.f32(float %v13, float %sum, float 1.0)
  %v15 = call float @llvm.fma.f32(float %v14, float %sum, float 1.0)
  %v16 = call float @llvm.fma.f32(float %v15, float %sum, float 1.0)
  %v17 = call float @llvm.fma.f32(float %v16, float %sum, float 1.0)
  %v18 = call float @llvm.fma.f32(float %v17, float %sum, float 1.0)
  %v19 = call float @llvm.fma.f32(float %v18, float %sum, float 1.0)
  %v20 = call float @llvm.fma.f32(float %v19, float %sum, float 1.0)
  %v21 = call float @llvm.fma.f32(float %v20, float %sum, float 1.0)
  %v22 = call float @llvm.fma.f32(float %v21, float %sum, float 1.0)
  %v23 = call float @llvm.fma.f32(float %v22, float %sum, float 1.0)
  %v24 = call float @llvm.fma.f32(float %v23, float %sum, float 1.0)
  %v25 = call float @llvm.fma.f32(float %v24, float %sum, float 1.0)
  %v26 = call float @llvm.fma.f32(float %v25, float %sum, float 1.0)
  %v27 = call float @llvm.fma.f32(float %v26, float %sum, float 1.0)
  %v28 = call float @llvm.fma.f32(float %v27, float %sum, float 1.0)
  %v29 = call float @llvm.fma.f32(float %v28, float %sum, float 1.0)
  %v30 = call float @llvm.fma.f32(float %v29, float %sum, float 1.0)
  %v31 = call float @llvm.fma.f32(float %v30, float %sum, float 1.0)
  %v32 = call float @llvm.fma.f32(float %v31, float %sum, float 1.0)
  %v33 = call float @llvm.fma.f32(float %v32, float %sum, float 1.0)
  %v34 = call float @llvm.fma.f32(float %v33, float %sum, float 1.0)
  %v35 = call float @llvm.fma.f32(float %v34, float %sum, float 1.0)
  %v36 = call float @llvm.fma.f32(float %v35, float %sum, float 1.0)
  %v37 = call float @llvm.fma.f32(float %v36, float %sum, float 1.0)
  %v38 = call float @llvm.fma.f32(float %v37, float %sum, float 1.0)
  %v39 = call float @llvm.fma.f32(float %v38, float %sum, float 1.0)
  %v40 = call float @llvm.fma.f32(float %v39, float %sum, float 1.0)
  %v41 = call float @llvm.fma.f32(float %v40, float %sum, float 1.0)
  %v42 = call float @llvm.fma.f32(float %v41, float %sum, float 1.0)
  %v43 = call float @llvm.fma.f32(float %v42, float %sum, float 1.0)
  %v44 = call float @llvm.fma.f32(float %v43, float %sum, float 1.0)
  %v45 = call float @llvm.fma.f32(float %v44, float %sum, float 1.0)
  %v46 = call float @llvm.fma.f32(float %v45, float %sum, float 1.0)
  %v47 = call float @llvm.fma.f32(float %v46, float %sum, float 1.0)
  %v48 = call float @llvm.fma.f32(float %v47, float %sum, float 1.0)
  %v49 = call float @llvm.fma.f32(float %v48, float %sum, float 1.0)
  %v50 = call float @llvm.fma.f32(float %v49, float %sum, float 1.0)
  %v51 = call float @llvm.fma.f32(float %v50, float %sum, float 1.0)
  %v52 = call float @llvm.fma.f32(float %v51, float %sum, float 1.0)
  %v53 = call float @llvm.fma.f32(float %v52, float %sum, float 1.0)
  %v54 = call float @llvm.fma.f32(float %v53, float %sum, float 1.0)
  %v55 = call float @llvm.fma.f32(float %v54, float %sum, float 1.0)
  %v56 = call float @llvm.fma.f32(float %v55, float %sum, float 1.0)
  %v57 = call float @llvm.fma.f32(float %v56, float %sum, float 1.0)
  %v58 = call float @llvm.fma.f32(float %v57, float %sum, float 1.0)
  %v59 = call float @llvm.fma.f32(float %v58, float %sum, float 1.0)
  %v60 = call float @llvm.fma.f32(float %v59, float %sum, float 1.0)
  %v61 = call float @llvm.fma.f32(float %v60, float %sum, float 1.0)
  %total = fadd float %sum, %v61
  %next = add nuw nsw i32 %i, 1
  %more = icmp ult i32 %next, 400
  br i1 %more, label %loop, label %end
end:
  ret float %total
}

; CHECK-LABEL: @products_62(
; CHECK: br i1 %more, label %loop, label %end{{$}}
define float @products_62(ptr addrspace(1) %x) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %total, %loop ]
  %p = getelementptr float, ptr addrspace(1) %x, i32 %i
  %v0 = load float, ptr addrspace(1) %p
  %v1 = call float @llvm.fma.f32(float %v0, float %sum, float 1.0)
  %v2 = call float @llvm.fma.f32(float %v1, float %sum, float 1.0)
  %v3 = call float @llvm.fma.f32(float %v2, float %sum, float 1.0)
  %v4 = call float @llvm.fma.f32(float %v3, float %sum, float 1.0)
  %v5 = call float @llvm.fma.f32(float %v4, float %sum, float 1.0)
  %v6 = call float @llvm.fma.f32(float %v5, float %sum, float 1.0)
  %v7 = call float @llvm.fma.f32(float %v6, float %sum, float 1.0)
  %v8 = call float @llvm.fma.f32(float %v7, float %sum, float 1.0)
  %v9 = call float @llvm.fma.f32(float %v8, float %sum, float 1.0)
  %v10 = call float @llvm.fma.f32(float %v9, float %sum, float 1.0)
  %v11 = call float @llvm.fma.f32(float %v10, float %sum, float 1.0)
  %v12 = call float @llvm.fma.f32(float %v11, float %sum, float 1.0)
  %v13 = call float @llvm.fma.f32(float %v12, float %sum, float 1.0)
  %v14 = call float @llvm.fma.f32(float %v13, float %sum, float 1.0)
  %v15 = call float @llvm.fma.f32(float %v14, float %sum, float 1.0)
  %v16 = call float @llvm.fma.f32(float %v15, float %sum, float 1.0)
  %v17 = call float @llvm.fma.f32(float %v16, float %sum, float 1.0)
  %v18 = call float @llvm.fma.f32(float %v17, float %sum, float 1.0)
  %v19 = call float @llvm.fma.f32(float %v18, float %sum, float 1.0)
  %v20 = call float @llvm.fma.f32(float %v19, float %sum, float 1.0)
  %v21 = call float @llvm.fma.f32(float %v20, float %sum, float 1.0)
  %v22 = call float @llvm.fma.f32(float %v21, float %sum, float 1.0)
  %v23 = call float @llvm.fma.f32(float %v22, float %sum, float 1.0)
  %v24 = call float @llvm.fma.f32(float %v23, float %sum, float 1.0)
  %v25 = call float @llvm.fma.f32(float %v24, float %sum, float 1.0)
  %v26 = call float @llvm.fma.f32(float %v25, float %sum, float 1.0)
  %v27 = call float @llvm.fma.f32(float %v26, float %sum, float 1.0)
  %v28 = call float @llvm.fma.f32(float %v27, float %sum, float 1.0)
  %v29 = call float @llvm.fma.f32(float %v28, float %sum, float 1.0)
  %v30 = call float @llvm.fma.f32(float %v29, float %sum, float 1.0)
  %v31 = call float @llvm.fma.f32(float %v30, float %sum, float 1.0)
  %v32 = call float @llvm.fma.f32(float %v31, float %sum, float 1.0)
  %v33 = call float @llvm.fma.f32(float %v32, float %sum, float 1.0)
  %v34 = call float @llvm.fma.f32(float %v33, float %sum, float 1.0)
  %v35 = call float @llvm.fma.f32(float %v34, float %sum, float 1.0)
  %v36 = call float @llvm.fma.f32(float %v35, float %sum, float 1.0)
  %v37 = call float @llvm.fma.f32(float %v36, float %sum, float 1.0)
  %v38 = call float @llvm.fma.f32(float %v37, float %sum, float 1.0)
  %v39 = call float @llvm.fma.f32(float %v38, float %sum, float 1.0)
  %v40 = call float @llvm.fma.f32(float %v39, float %sum, float 1.0)
  %v41 = call float @llvm.fma.f32(float %v40, float %sum, float 1.0)
  %v42 = call float @llvm.fma.f32(float %v41, float %sum, float 1.0)
  %v43 = call float @llvm.fma.f32(float %v42, float %sum, float 1.0)
  %v44 = call float @llvm.fma.f32(float %v43, float %sum, float 1.0)
  %v45 = call float @llvm.fma.f32(float %v44, float %sum, float 1.0)
  %v46 = call float @llvm.fma.f32(float %v45, float %sum, float 1.0)
  %v47 = call float @llvm.fma.f32(float %v46, float %sum, float 1.0)
  %v48 = call float @llvm.fma.f32(float %v47, float %sum, float 1.0)
  %v49 = call float @llvm.fma.f32(float %v48, float %sum, float 1.0)
  %v50 = call float @llvm.fma.f32(float %v49, float %sum, float 1.0)
  %v51 = call float @llvm.fma.f32(float %v50, float %sum, float 1.0)
  %v52 = call float @llvm.fma.f32(float %v51, float %sum, float 1.0)
  %v53 = call float @llvm.fma.f32(float %v52, float %sum, float 1.0)
  %v54 = call float @llvm.fma.f32(float %v53, float %sum, float 1.0)
  %v55 = call float @llvm.fma.f32(float %v54, float %sum, float 1.0)
  %v56 = call float @llvm.fma.f32(float %v55, float %sum, float 1.0)
  %v57 = call float @llvm.fma.f32(float %v56, float %sum, float 1.0)
  %v58 = call float @llvm.fma.f32(float %v57, float %sum, float 1.0)
  %v59 = call float @llvm.fma.f32(float %v58, float %sum, float 1.0)
  %v60 = call float @llvm.fma.f32(float %v59, float %sum, float 1.0)
  %v61 = call float @llvm.fma.f32(float %v60, float %sum, float 1.0)
  %v62 = call float @llvm.fma.f32(float %v61, float %sum, float 1.0)
  %total = fadd float %sum, %v62
  %next = add nuw nsw i32 %i, 1
  %more = icmp ult i32 %next, 400
  br i1 %more, label %loop, label %end
end:
  ret float %total
}

; CHECK-LABEL: @together(
; CHECK: br i1 %more, label %loop, label %end{{$}}
define float @together(ptr addrspace(1) %x) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %total, %loop ]
  %p = getelementptr float, ptr addrspace(1) %x, i32 %i
  %v0 = load float, ptr addrspace(1) %p
  call void @llvm.nvvm.barrier0()
  %total = fadd float %sum, %v0
  %next = add nuw nsw i32 %i, 1
  %more = icmp ult i32 %next, 400
  br i1 %more, label %loop, label %end
end:
  ret float %total
}

declare float @llvm.fma.f32(float, float, float)
declare void @llvm.nvvm.barrier0() convergent
