; Four sums of a block, in registers of 8: each is reduced to one register by 3 additions, and the four registers to one
; by 3 more. Where a sum is used before the next one begins, each is reduced alone.
; RUN: kiln-opt --passes=lane-reductions %s | FileCheck %s

; CHECK-LABEL: @together(
; CHECK-COUNT-15: fadd <8 x float>
; CHECK-NOT: fadd <8 x float>
; CHECK: fadd <4 x float>
; CHECK-NOT: fadd
; CHECK: ret void
define void @together(<32 x float> %x0, <32 x float> %x1, <32 x float> %x2, <32 x float> %x3, ptr %p) {
  %v0.m1 = shufflevector <32 x float> %x0, <32 x float> poison, <32 x i32> <i32 1, i32 0, i32 3, i32 2, i32 5, i32 4, i32 7, i32 6, i32 9, i32 8, i32 11, i32 10, i32 13, i32 12, i32 15, i32 14, i32 17, i32 16, i32 19, i32 18, i32 21, i32 20, i32 23, i32 22, i32 25, i32 24, i32 27, i32 26, i32 29, i32 28, i32 31, i32 30>
  %v0.s1 = fadd <32 x float> %x0, %v0.m1
  %v0.m2 = shufflevector <32 x float> %v0.s1, <32 x float> poison, <32 x i32> <i32 2, i32 3, i32 0, i32 1, i32 6, i32 7, i32 4, i32 5, i32 10, i32 11, i32 8, i32 9, i32 14, i32 15, i32 12, i32 13, i32 18, i32 19, i32 16, i32 17, i32 22, i32 23, i32 20, i32 21, i32 26, i32 27, i32 24, i32 25, i32 30, i32 31, i32 28, i32 29>
  %v0.s2 = fadd <32 x float> %v0.s1, %v0.m2
  %v0.m4 = shufflevector <32 x float> %v0.s2, <32 x float> poison, <32 x i32> <i32 4, i32 5, i32 6, i32 7, i32 0, i32 1, i32 2, i32 3, i32 12, i32 13, i32 14, i32 15, i32 8, i32 9, i32 10, i32 11, i32 20, i32 21, i32 22, i32 23, i32 16, i32 17, i32 18, i32 19, i32 28, i32 29, i32 30, i32 31, i32 24, i32 25, i32 26, i32 27>
  %v0.s4 = fadd <32 x float> %v0.s2, %v0.m4
  %v0.m8 = shufflevector <32 x float> %v0.s4, <32 x float> poison, <32 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %v0.s8 = fadd <32 x float> %v0.s4, %v0.m8
  %v0.m16 = shufflevector <32 x float> %v0.s8, <32 x float> poison, <32 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v0.s16 = fadd <32 x float> %v0.s8, %v0.m16
  %sum0 = extractelement <32 x float> %v0.s16, i64 0
  %v1.m1 = shufflevector <32 x float> %x1, <32 x float> poison, <32 x i32> <i32 1, i32 0, i32 3, i32 2, i32 5, i32 4, i32 7, i32 6, i32 9, i32 8, i32 11, i32 10, i32 13, i32 12, i32 15, i32 14, i32 17, i32 16, i32 19, i32 18, i32 21, i32 20, i32 23, i32 22, i32 25, i32 24, i32 27, i32 26, i32 29, i32 28, i32 31, i32 30>
  %v1.s1 = fadd <32 x float> %x1, %v1.m1
  %v1.m2 = shufflevector <32 x float> %v1.s1, <32 x float> poison, <32 x i32> <i32 2, i32 3, i32 0, i32 1, i32 6, i32 7, i32 4, i32 5, i32 10, i32 11, i32 8, i32 9, i32 14, i32 15, i32 12, i32 13, i32 18, i32 19, i32 16, i32 17, i32 22, i32 23, i32 20, i32 21, i32 26, i32 27, i32 24, i32 25, i32 30, i32 31, i32 28, i32 29>
  %v1.s2 = fadd <32 x float> %v1.s1, %v1.m2
  %v1.m4 = shufflevector <32 x float> %v1.s2, <32 x float> poison, <32 x i32> <i32 4, i32 5, i32 6, i32 7, i32 0, i32 1, i32 2, i32 3, i32 12, i32 13, i32 14, i32 15, i32 8, i32 9, i32 10, i32 11, i32 20, i32 21, i32 22, i32 23, i32 16, i32 17, i32 18, i32 19, i32 28, i32 29, i32 30, i32 31, i32 24, i32 25, i32 26, i32 27>
  %v1.s4 = fadd <32 x float> %v1.s2, %v1.m4
  %v1.m8 = shufflevector <32 x float> %v1.s4, <32 x float> poison, <32 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %v1.s8 = fadd <32 x float> %v1.s4, %v1.m8
  %v1.m16 = shufflevector <32 x float> %v1.s8, <32 x float> poison, <32 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v1.s16 = fadd <32 x float> %v1.s8, %v1.m16
  %sum1 = extractelement <32 x float> %v1.s16, i64 0
  %v2.m1 = shufflevector <32 x float> %x2, <32 x float> poison, <32 x i32> <i32 1, i32 0, i32 3, i32 2, i32 5, i32 4, i32 7, i32 6, i32 9, i32 8, i32 11, i32 10, i32 13, i32 12, i32 15, i32 14, i32 17, i32 16, i32 19, i32 18, i32 21, i32 20, i32 23, i32 22, i32 25, i32 24, i32 27, i32 26, i32 29, i32 28, i32 31, i32 30>
  %v2.s1 = fadd <32 x float> %x2, %v2.m1
  %v2.m2 = shufflevector <32 x float> %v2.s1, <32 x float> poison, <32 x i32> <i32 2, i32 3, i32 0, i32 1, i32 6, i32 7, i32 4, i32 5, i32 10, i32 11, i32 8, i32 9, i32 14, i32 15, i32 12, i32 13, i32 18, i32 19, i32 16, i32 17, i32 22, i32 23, i32 20, i32 21, i32 26, i32 27, i32 24, i32 25, i32 30, i32 31, i32 28, i32 29>
  %v2.s2 = fadd <32 x float> %v2.s1, %v2.m2
  %v2.m4 = shufflevector <32 x float> %v2.s2, <32 x float> poison, <32 x i32> <i32 4, i32 5, i32 6, i32 7, i32 0, i32 1, i32 2, i32 3, i32 12, i32 13, i32 14, i32 15, i32 8, i32 9, i32 10, i32 11, i32 20, i32 21, i32 22, i32 23, i32 16, i32 17, i32 18, i32 19, i32 28, i32 29, i32 30, i32 31, i32 24, i32 25, i32 26, i32 27>
  %v2.s4 = fadd <32 x float> %v2.s2, %v2.m4
  %v2.m8 = shufflevector <32 x float> %v2.s4, <32 x float> poison, <32 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %v2.s8 = fadd <32 x float> %v2.s4, %v2.m8
  %v2.m16 = shufflevector <32 x float> %v2.s8, <32 x float> poison, <32 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v2.s16 = fadd <32 x float> %v2.s8, %v2.m16
  %sum2 = extractelement <32 x float> %v2.s16, i64 0
  %v3.m1 = shufflevector <32 x float> %x3, <32 x float> poison, <32 x i32> <i32 1, i32 0, i32 3, i32 2, i32 5, i32 4, i32 7, i32 6, i32 9, i32 8, i32 11, i32 10, i32 13, i32 12, i32 15, i32 14, i32 17, i32 16, i32 19, i32 18, i32 21, i32 20, i32 23, i32 22, i32 25, i32 24, i32 27, i32 26, i32 29, i32 28, i32 31, i32 30>
  %v3.s1 = fadd <32 x float> %x3, %v3.m1
  %v3.m2 = shufflevector <32 x float> %v3.s1, <32 x float> poison, <32 x i32> <i32 2, i32 3, i32 0, i32 1, i32 6, i32 7, i32 4, i32 5, i32 10, i32 11, i32 8, i32 9, i32 14, i32 15, i32 12, i32 13, i32 18, i32 19, i32 16, i32 17, i32 22, i32 23, i32 20, i32 21, i32 26, i32 27, i32 24, i32 25, i32 30, i32 31, i32 28, i32 29>
  %v3.s2 = fadd <32 x float> %v3.s1, %v3.m2
  %v3.m4 = shufflevector <32 x float> %v3.s2, <32 x float> poison, <32 x i32> <i32 4, i32 5, i32 6, i32 7, i32 0, i32 1, i32 2, i32 3, i32 12, i32 13, i32 14, i32 15, i32 8, i32 9, i32 10, i32 11, i32 20, i32 21, i32 22, i32 23, i32 16, i32 17, i32 18, i32 19, i32 28, i32 29, i32 30, i32 31, i32 24, i32 25, i32 26, i32 27>
  %v3.s4 = fadd <32 x float> %v3.s2, %v3.m4
  %v3.m8 = shufflevector <32 x float> %v3.s4, <32 x float> poison, <32 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %v3.s8 = fadd <32 x float> %v3.s4, %v3.m8
  %v3.m16 = shufflevector <32 x float> %v3.s8, <32 x float> poison, <32 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v3.s16 = fadd <32 x float> %v3.s8, %v3.m16
  %sum3 = extractelement <32 x float> %v3.s16, i64 0
  %a0 = getelementptr float, ptr %p, i64 0
  store float %sum0, ptr %a0
  %a1 = getelementptr float, ptr %p, i64 1
  store float %sum1, ptr %a1
  %a2 = getelementptr float, ptr %p, i64 2
  store float %sum2, ptr %a2
  %a3 = getelementptr float, ptr %p, i64 3
  store float %sum3, ptr %a3
  ret void
}

; CHECK-LABEL: @one_by_one(
; CHECK-COUNT-3: fadd <8 x float>
; CHECK: fadd <4 x float>
; CHECK: fadd <2 x float>
; CHECK: fadd float
; CHECK-COUNT-3: fadd <8 x float>
; CHECK: fadd <4 x float>
; CHECK: fadd <2 x float>
; CHECK: fadd float
; CHECK: ret void
define void @one_by_one(<32 x float> %x0, <32 x float> %x1, ptr %p) {
  %v0.m1 = shufflevector <32 x float> %x0, <32 x float> poison, <32 x i32> <i32 1, i32 0, i32 3, i32 2, i32 5, i32 4, i32 7, i32 6, i32 9, i32 8, i32 11, i32 10, i32 13, i32 12, i32 15, i32 14, i32 17, i32 16, i32 19, i32 18, i32 21, i32 20, i32 23, i32 22, i32 25, i32 24, i32 27, i32 26, i32 29, i32 28, i32 31, i32 30>
  %v0.s1 = fadd <32 x float> %x0, %v0.m1
  %v0.m2 = shufflevector <32 x float> %v0.s1, <32 x float> poison, <32 x i32> <i32 2, i32 3, i32 0, i32 1, i32 6, i32 7, i32 4, i32 5, i32 10, i32 11, i32 8, i32 9, i32 14, i32 15, i32 12, i32 13, i32 18, i32 19, i32 16, i32 17, i32 22, i32 23, i32 20, i32 21, i32 26, i32 27, i32 24, i32 25, i32 30, i32 31, i32 28, i32 29>
  %v0.s2 = fadd <32 x float> %v0.s1, %v0.m2
  %v0.m4 = shufflevector <32 x float> %v0.s2, <32 x float> poison, <32 x i32> <i32 4, i32 5, i32 6, i32 7, i32 0, i32 1, i32 2, i32 3, i32 12, i32 13, i32 14, i32 15, i32 8, i32 9, i32 10, i32 11, i32 20, i32 21, i32 22, i32 23, i32 16, i32 17, i32 18, i32 19, i32 28, i32 29, i32 30, i32 31, i32 24, i32 25, i32 26, i32 27>
  %v0.s4 = fadd <32 x float> %v0.s2, %v0.m4
  %v0.m8 = shufflevector <32 x float> %v0.s4, <32 x float> poison, <32 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %v0.s8 = fadd <32 x float> %v0.s4, %v0.m8
  %v0.m16 = shufflevector <32 x float> %v0.s8, <32 x float> poison, <32 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v0.s16 = fadd <32 x float> %v0.s8, %v0.m16
  %sum0 = extractelement <32 x float> %v0.s16, i64 0
  store float %sum0, ptr %p
  %v1.m1 = shufflevector <32 x float> %x1, <32 x float> poison, <32 x i32> <i32 1, i32 0, i32 3, i32 2, i32 5, i32 4, i32 7, i32 6, i32 9, i32 8, i32 11, i32 10, i32 13, i32 12, i32 15, i32 14, i32 17, i32 16, i32 19, i32 18, i32 21, i32 20, i32 23, i32 22, i32 25, i32 24, i32 27, i32 26, i32 29, i32 28, i32 31, i32 30>
  %v1.s1 = fadd <32 x float> %x1, %v1.m1
  %v1.m2 = shufflevector <32 x float> %v1.s1, <32 x float> poison, <32 x i32> <i32 2, i32 3, i32 0, i32 1, i32 6, i32 7, i32 4, i32 5, i32 10, i32 11, i32 8, i32 9, i32 14, i32 15, i32 12, i32 13, i32 18, i32 19, i32 16, i32 17, i32 22, i32 23, i32 20, i32 21, i32 26, i32 27, i32 24, i32 25, i32 30, i32 31, i32 28, i32 29>
  %v1.s2 = fadd <32 x float> %v1.s1, %v1.m2
  %v1.m4 = shufflevector <32 x float> %v1.s2, <32 x float> poison, <32 x i32> <i32 4, i32 5, i32 6, i32 7, i32 0, i32 1, i32 2, i32 3, i32 12, i32 13, i32 14, i32 15, i32 8, i32 9, i32 10, i32 11, i32 20, i32 21, i32 22, i32 23, i32 16, i32 17, i32 18, i32 19, i32 28, i32 29, i32 30, i32 31, i32 24, i32 25, i32 26, i32 27>
  %v1.s4 = fadd <32 x float> %v1.s2, %v1.m4
  %v1.m8 = shufflevector <32 x float> %v1.s4, <32 x float> poison, <32 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %v1.s8 = fadd <32 x float> %v1.s4, %v1.m8
  %v1.m16 = shufflevector <32 x float> %v1.s8, <32 x float> poison, <32 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %v1.s16 = fadd <32 x float> %v1.s8, %v1.m16
  %sum1 = extractelement <32 x float> %v1.s16, i64 0
  store float %sum1, ptr %p
  %a0 = getelementptr float, ptr %p, i64 0
  store float %sum0, ptr %a0
  %a1 = getelementptr float, ptr %p, i64 1
  store float %sum1, ptr %a1
  ret void
}
