; 31 counts of 8 are 248: a sum of 32 counts is two of bytes.
; RUN: kiln-opt --passes=bit-counts --cpu=x86-64-v4 %s | FileCheck %s

declare <16 x i32> @llvm.ctpop.v16i32(<16 x i32>)

; CHECK-LABEL: define <16 x i32> @many(
; CHECK-COUNT-31: call <64 x i8> @llvm.ctpop.v64i8
; CHECK-NOT: llvm.ctpop
; CHECK: @llvm.x86.avx512.pmaddubs.w.512
; CHECK: call <64 x i8> @llvm.ctpop.v64i8
; CHECK-NOT: llvm.ctpop
; CHECK: @llvm.x86.avx512.pmaddubs.w.512
; CHECK: ret <16 x i32>
define <16 x i32> @many(<16 x i32> %a) {
  %x0 = xor <16 x i32> %a, splat (i32 0)
  %c0 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x0)
  %s0 = add <16 x i32> %a, %c0
  %x1 = xor <16 x i32> %a, splat (i32 1)
  %c1 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x1)
  %s1 = add <16 x i32> %s0, %c1
  %x2 = xor <16 x i32> %a, splat (i32 2)
  %c2 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x2)
  %s2 = add <16 x i32> %s1, %c2
  %x3 = xor <16 x i32> %a, splat (i32 3)
  %c3 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x3)
  %s3 = add <16 x i32> %s2, %c3
  %x4 = xor <16 x i32> %a, splat (i32 4)
  %c4 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x4)
  %s4 = add <16 x i32> %s3, %c4
  %x5 = xor <16 x i32> %a, splat (i32 5)
  %c5 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x5)
  %s5 = add <16 x i32> %s4, %c5
  %x6 = xor <16 x i32> %a, splat (i32 6)
  %c6 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x6)
  %s6 = add <16 x i32> %s5, %c6
  %x7 = xor <16 x i32> %a, splat (i32 7)
  %c7 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x7)
  %s7 = add <16 x i32> %s6, %c7
  %x8 = xor <16 x i32> %a, splat (i32 8)
  %c8 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x8)
  %s8 = add <16 x i32> %s7, %c8
  %x9 = xor <16 x i32> %a, splat (i32 9)
  %c9 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x9)
  %s9 = add <16 x i32> %s8, %c9
  %x10 = xor <16 x i32> %a, splat (i32 10)
  %c10 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x10)
  %s10 = add <16 x i32> %s9, %c10
  %x11 = xor <16 x i32> %a, splat (i32 11)
  %c11 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x11)
  %s11 = add <16 x i32> %s10, %c11
  %x12 = xor <16 x i32> %a, splat (i32 12)
  %c12 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x12)
  %s12 = add <16 x i32> %s11, %c12
  %x13 = xor <16 x i32> %a, splat (i32 13)
  %c13 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x13)
  %s13 = add <16 x i32> %s12, %c13
  %x14 = xor <16 x i32> %a, splat (i32 14)
  %c14 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x14)
  %s14 = add <16 x i32> %s13, %c14
  %x15 = xor <16 x i32> %a, splat (i32 15)
  %c15 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x15)
  %s15 = add <16 x i32> %s14, %c15
  %x16 = xor <16 x i32> %a, splat (i32 16)
  %c16 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x16)
  %s16 = add <16 x i32> %s15, %c16
  %x17 = xor <16 x i32> %a, splat (i32 17)
  %c17 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x17)
  %s17 = add <16 x i32> %s16, %c17
  %x18 = xor <16 x i32> %a, splat (i32 18)
  %c18 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x18)
  %s18 = add <16 x i32> %s17, %c18
  %x19 = xor <16 x i32> %a, splat (i32 19)
  %c19 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x19)
  %s19 = add <16 x i32> %s18, %c19
  %x20 = xor <16 x i32> %a, splat (i32 20)
  %c20 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x20)
  %s20 = add <16 x i32> %s19, %c20
  %x21 = xor <16 x i32> %a, splat (i32 21)
  %c21 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x21)
  %s21 = add <16 x i32> %s20, %c21
  %x22 = xor <16 x i32> %a, splat (i32 22)
  %c22 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x22)
  %s22 = add <16 x i32> %s21, %c22
  %x23 = xor <16 x i32> %a, splat (i32 23)
  %c23 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x23)
  %s23 = add <16 x i32> %s22, %c23
  %x24 = xor <16 x i32> %a, splat (i32 24)
  %c24 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x24)
  %s24 = add <16 x i32> %s23, %c24
  %x25 = xor <16 x i32> %a, splat (i32 25)
  %c25 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x25)
  %s25 = add <16 x i32> %s24, %c25
  %x26 = xor <16 x i32> %a, splat (i32 26)
  %c26 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x26)
  %s26 = add <16 x i32> %s25, %c26
  %x27 = xor <16 x i32> %a, splat (i32 27)
  %c27 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x27)
  %s27 = add <16 x i32> %s26, %c27
  %x28 = xor <16 x i32> %a, splat (i32 28)
  %c28 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x28)
  %s28 = add <16 x i32> %s27, %c28
  %x29 = xor <16 x i32> %a, splat (i32 29)
  %c29 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x29)
  %s29 = add <16 x i32> %s28, %c29
  %x30 = xor <16 x i32> %a, splat (i32 30)
  %c30 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x30)
  %s30 = add <16 x i32> %s29, %c30
  %x31 = xor <16 x i32> %a, splat (i32 31)
  %c31 = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %x31)
  %s31 = add <16 x i32> %s30, %c31
  ret <16 x i32> %s31
}
