; A sum without the last step is not that of all lanes; a store that some simdgroups skip must not happen for all.
; RUN: kiln-opt --passes=deferred-reductions %s | FileCheck %s
; RUN: kiln-opt --passes=deferred-reductions --remarks %s 2>&1 | FileCheck %s --check-prefix=REMARK

; REMARK: remark: deferred-reductions: this sum is made in the loop: only some simdgroups store it
; REMARK-NOT: remark:

; CHECK-LABEL: @sixteen_lanes(
; CHECK-NOT: alloca
; CHECK: store float %total, ptr %at
; CHECK: ret void
define void @sixteen_lanes(ptr noalias %data, ptr noalias %sums) {
entry:
  br label %simdgroup
simdgroup:
  %number = phi i32 [ 0, %entry ], [ %next, %simdgroup ]
  %lanes.at = getelementptr <32 x float>, ptr %data, i32 %number
  %lanes = load <32 x float>, ptr %lanes.at, align 4
  %moved1 = shufflevector <32 x float> %lanes, <32 x float> poison, <32 x i32> <i32 1, i32 0, i32 3, i32 2, i32 5, i32 4, i32 7, i32 6, i32 9, i32 8, i32 11, i32 10, i32 13, i32 12, i32 15, i32 14, i32 17, i32 16, i32 19, i32 18, i32 21, i32 20, i32 23, i32 22, i32 25, i32 24, i32 27, i32 26, i32 29, i32 28, i32 31, i32 30>
  %sum1 = fadd <32 x float> %lanes, %moved1
  %moved2 = shufflevector <32 x float> %sum1, <32 x float> poison, <32 x i32> <i32 2, i32 3, i32 0, i32 1, i32 6, i32 7, i32 4, i32 5, i32 10, i32 11, i32 8, i32 9, i32 14, i32 15, i32 12, i32 13, i32 18, i32 19, i32 16, i32 17, i32 22, i32 23, i32 20, i32 21, i32 26, i32 27, i32 24, i32 25, i32 30, i32 31, i32 28, i32 29>
  %sum2 = fadd <32 x float> %sum1, %moved2
  %moved4 = shufflevector <32 x float> %sum2, <32 x float> poison, <32 x i32> <i32 4, i32 5, i32 6, i32 7, i32 0, i32 1, i32 2, i32 3, i32 12, i32 13, i32 14, i32 15, i32 8, i32 9, i32 10, i32 11, i32 20, i32 21, i32 22, i32 23, i32 16, i32 17, i32 18, i32 19, i32 28, i32 29, i32 30, i32 31, i32 24, i32 25, i32 26, i32 27>
  %sum4 = fadd <32 x float> %sum2, %moved4
  %moved8 = shufflevector <32 x float> %sum4, <32 x float> poison, <32 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %sum8 = fadd <32 x float> %sum4, %moved8
  %total = extractelement <32 x float> %sum8, i64 0
  %at = getelementptr float, ptr %sums, i32 %number
  store float %total, ptr %at
  %next = add nuw nsw i32 %number, 1
  %more = icmp ult i32 %next, 4
  br i1 %more, label %simdgroup, label %exit
exit:
  ret void
}

; CHECK-LABEL: @some_simdgroups(
; CHECK-NOT: alloca
; CHECK: store float %total, ptr %at
; CHECK: ret void
define void @some_simdgroups(ptr noalias %data, ptr noalias %sums, i1 %condition) {
entry:
  br label %simdgroup
simdgroup:
  %number = phi i32 [ 0, %entry ], [ %next, %join ]
  %lanes.at = getelementptr <32 x float>, ptr %data, i32 %number
  %lanes = load <32 x float>, ptr %lanes.at, align 4
  %moved1 = shufflevector <32 x float> %lanes, <32 x float> poison, <32 x i32> <i32 1, i32 0, i32 3, i32 2, i32 5, i32 4, i32 7, i32 6, i32 9, i32 8, i32 11, i32 10, i32 13, i32 12, i32 15, i32 14, i32 17, i32 16, i32 19, i32 18, i32 21, i32 20, i32 23, i32 22, i32 25, i32 24, i32 27, i32 26, i32 29, i32 28, i32 31, i32 30>
  %sum1 = fadd <32 x float> %lanes, %moved1
  %moved2 = shufflevector <32 x float> %sum1, <32 x float> poison, <32 x i32> <i32 2, i32 3, i32 0, i32 1, i32 6, i32 7, i32 4, i32 5, i32 10, i32 11, i32 8, i32 9, i32 14, i32 15, i32 12, i32 13, i32 18, i32 19, i32 16, i32 17, i32 22, i32 23, i32 20, i32 21, i32 26, i32 27, i32 24, i32 25, i32 30, i32 31, i32 28, i32 29>
  %sum2 = fadd <32 x float> %sum1, %moved2
  %moved4 = shufflevector <32 x float> %sum2, <32 x float> poison, <32 x i32> <i32 4, i32 5, i32 6, i32 7, i32 0, i32 1, i32 2, i32 3, i32 12, i32 13, i32 14, i32 15, i32 8, i32 9, i32 10, i32 11, i32 20, i32 21, i32 22, i32 23, i32 16, i32 17, i32 18, i32 19, i32 28, i32 29, i32 30, i32 31, i32 24, i32 25, i32 26, i32 27>
  %sum4 = fadd <32 x float> %sum2, %moved4
  %moved8 = shufflevector <32 x float> %sum4, <32 x float> poison, <32 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %sum8 = fadd <32 x float> %sum4, %moved8
  %moved16 = shufflevector <32 x float> %sum8, <32 x float> poison, <32 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %sum16 = fadd <32 x float> %sum8, %moved16
  %total = extractelement <32 x float> %sum16, i64 0
  br i1 %condition, label %stored, label %join
stored:
  %at = getelementptr float, ptr %sums, i32 %number
  store float %total, ptr %at
  br label %join
join:
  %next = add nuw nsw i32 %number, 1
  %more = icmp ult i32 %next, 4
  br i1 %more, label %simdgroup, label %exit
exit:
  ret void
}
