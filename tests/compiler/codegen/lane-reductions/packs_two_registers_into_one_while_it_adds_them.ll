; The sum of 32 lanes, in four registers of 8: lanes at distance 1 are added first, and the sums of two registers are
; packed into one. Three additions of registers remain, and then ever fewer lanes, instead of five additions of all
; lanes.
; RUN: kiln-opt --passes=lane-reductions %s | FileCheck %s

; CHECK-LABEL: @floats(
; CHECK-COUNT-3: fadd <8 x float>
; CHECK-NOT: fadd <8 x float>
; CHECK: fadd <4 x float>
; CHECK-NOT: fadd <4 x float>
; CHECK: fadd <2 x float>
; CHECK-NOT: fadd <2 x float>
; CHECK: %[[SUM:.*]] = fadd float
; CHECK-NEXT: ret float %[[SUM]]
define float @floats(<32 x float> %x, ptr %p) {
  %m1 = shufflevector <32 x float> %x, <32 x float> poison, <32 x i32> <i32 1, i32 0, i32 3, i32 2, i32 5, i32 4, i32 7, i32 6, i32 9, i32 8, i32 11, i32 10, i32 13, i32 12, i32 15, i32 14, i32 17, i32 16, i32 19, i32 18, i32 21, i32 20, i32 23, i32 22, i32 25, i32 24, i32 27, i32 26, i32 29, i32 28, i32 31, i32 30>
  %s1 = fadd <32 x float> %x, %m1
  %m2 = shufflevector <32 x float> %s1, <32 x float> poison, <32 x i32> <i32 2, i32 3, i32 0, i32 1, i32 6, i32 7, i32 4, i32 5, i32 10, i32 11, i32 8, i32 9, i32 14, i32 15, i32 12, i32 13, i32 18, i32 19, i32 16, i32 17, i32 22, i32 23, i32 20, i32 21, i32 26, i32 27, i32 24, i32 25, i32 30, i32 31, i32 28, i32 29>
  %s2 = fadd <32 x float> %s1, %m2
  %m4 = shufflevector <32 x float> %s2, <32 x float> poison, <32 x i32> <i32 4, i32 5, i32 6, i32 7, i32 0, i32 1, i32 2, i32 3, i32 12, i32 13, i32 14, i32 15, i32 8, i32 9, i32 10, i32 11, i32 20, i32 21, i32 22, i32 23, i32 16, i32 17, i32 18, i32 19, i32 28, i32 29, i32 30, i32 31, i32 24, i32 25, i32 26, i32 27>
  %s4 = fadd <32 x float> %s2, %m4
  %m8 = shufflevector <32 x float> %s4, <32 x float> poison, <32 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %s8 = fadd <32 x float> %s4, %m8
  %m16 = shufflevector <32 x float> %s8, <32 x float> poison, <32 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %s16 = fadd <32 x float> %s8, %m16
  %sum = extractelement <32 x float> %s16, i64 0
  ret float %sum
}

; CHECK-LABEL: @integers(
; CHECK-COUNT-3: add <8 x i32>
; CHECK-NOT: add <8 x i32>
; CHECK: add <4 x i32>
; CHECK-NOT: add <4 x i32>
; CHECK: add <2 x i32>
; CHECK-NOT: add <2 x i32>
; CHECK: %[[SUM:.*]] = add i32
; CHECK-NEXT: ret i32 %[[SUM]]
define i32 @integers(<32 x i32> %x, ptr %p) {
  %m1 = shufflevector <32 x i32> %x, <32 x i32> poison, <32 x i32> <i32 1, i32 0, i32 3, i32 2, i32 5, i32 4, i32 7, i32 6, i32 9, i32 8, i32 11, i32 10, i32 13, i32 12, i32 15, i32 14, i32 17, i32 16, i32 19, i32 18, i32 21, i32 20, i32 23, i32 22, i32 25, i32 24, i32 27, i32 26, i32 29, i32 28, i32 31, i32 30>
  %s1 = add <32 x i32> %x, %m1
  %m2 = shufflevector <32 x i32> %s1, <32 x i32> poison, <32 x i32> <i32 2, i32 3, i32 0, i32 1, i32 6, i32 7, i32 4, i32 5, i32 10, i32 11, i32 8, i32 9, i32 14, i32 15, i32 12, i32 13, i32 18, i32 19, i32 16, i32 17, i32 22, i32 23, i32 20, i32 21, i32 26, i32 27, i32 24, i32 25, i32 30, i32 31, i32 28, i32 29>
  %s2 = add <32 x i32> %s1, %m2
  %m4 = shufflevector <32 x i32> %s2, <32 x i32> poison, <32 x i32> <i32 4, i32 5, i32 6, i32 7, i32 0, i32 1, i32 2, i32 3, i32 12, i32 13, i32 14, i32 15, i32 8, i32 9, i32 10, i32 11, i32 20, i32 21, i32 22, i32 23, i32 16, i32 17, i32 18, i32 19, i32 28, i32 29, i32 30, i32 31, i32 24, i32 25, i32 26, i32 27>
  %s4 = add <32 x i32> %s2, %m4
  %m8 = shufflevector <32 x i32> %s4, <32 x i32> poison, <32 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %s8 = add <32 x i32> %s4, %m8
  %m16 = shufflevector <32 x i32> %s8, <32 x i32> poison, <32 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %s16 = add <32 x i32> %s8, %m16
  %sum = extractelement <32 x i32> %s16, i64 0
  ret i32 %sum
}

; CHECK-LABEL: @largest(
; CHECK-COUNT-3: call <8 x i32> @llvm.smax.v8i32
; CHECK: call <4 x i32> @llvm.smax.v4i32
; CHECK: call <2 x i32> @llvm.smax.v2i32
; CHECK: call i32 @llvm.smax.i32
; CHECK-NEXT: ret i32
define i32 @largest(<32 x i32> %x, ptr %p) {
  %m1 = shufflevector <32 x i32> %x, <32 x i32> poison, <32 x i32> <i32 1, i32 0, i32 3, i32 2, i32 5, i32 4, i32 7, i32 6, i32 9, i32 8, i32 11, i32 10, i32 13, i32 12, i32 15, i32 14, i32 17, i32 16, i32 19, i32 18, i32 21, i32 20, i32 23, i32 22, i32 25, i32 24, i32 27, i32 26, i32 29, i32 28, i32 31, i32 30>
  %s1 = call <32 x i32> @llvm.smax.v32i32(<32 x i32> %x, <32 x i32> %m1)
  %m2 = shufflevector <32 x i32> %s1, <32 x i32> poison, <32 x i32> <i32 2, i32 3, i32 0, i32 1, i32 6, i32 7, i32 4, i32 5, i32 10, i32 11, i32 8, i32 9, i32 14, i32 15, i32 12, i32 13, i32 18, i32 19, i32 16, i32 17, i32 22, i32 23, i32 20, i32 21, i32 26, i32 27, i32 24, i32 25, i32 30, i32 31, i32 28, i32 29>
  %s2 = call <32 x i32> @llvm.smax.v32i32(<32 x i32> %s1, <32 x i32> %m2)
  %m4 = shufflevector <32 x i32> %s2, <32 x i32> poison, <32 x i32> <i32 4, i32 5, i32 6, i32 7, i32 0, i32 1, i32 2, i32 3, i32 12, i32 13, i32 14, i32 15, i32 8, i32 9, i32 10, i32 11, i32 20, i32 21, i32 22, i32 23, i32 16, i32 17, i32 18, i32 19, i32 28, i32 29, i32 30, i32 31, i32 24, i32 25, i32 26, i32 27>
  %s4 = call <32 x i32> @llvm.smax.v32i32(<32 x i32> %s2, <32 x i32> %m4)
  %m8 = shufflevector <32 x i32> %s4, <32 x i32> poison, <32 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23>
  %s8 = call <32 x i32> @llvm.smax.v32i32(<32 x i32> %s4, <32 x i32> %m8)
  %m16 = shufflevector <32 x i32> %s8, <32 x i32> poison, <32 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %s16 = call <32 x i32> @llvm.smax.v32i32(<32 x i32> %s8, <32 x i32> %m16)
  %sum = extractelement <32 x i32> %s16, i64 0
  ret i32 %sum
}

declare <32 x i32> @llvm.smax.v32i32(<32 x i32>, <32 x i32>)
