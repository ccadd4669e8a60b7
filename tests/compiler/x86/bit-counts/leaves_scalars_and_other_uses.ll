; Scalars have an instruction, and narrow numbers are LLVM's. A count that is used twice is added by itself.
; RUN: kiln-opt --passes=bit-counts --cpu=x86-64-v4 %s | FileCheck %s

declare i32 @llvm.ctpop.i32(i32)
declare <32 x i16> @llvm.ctpop.v32i16(<32 x i16>)
declare <16 x i32> @llvm.ctpop.v16i32(<16 x i32>)

; CHECK-LABEL: define i32 @scalar(
; CHECK: call i32 @llvm.ctpop.i32(i32 %a)
define i32 @scalar(i32 %a) {
  %c = call i32 @llvm.ctpop.i32(i32 %a)
  ret i32 %c
}

; CHECK-LABEL: define <32 x i16> @narrow(
; CHECK: call <32 x i16> @llvm.ctpop.v32i16(<32 x i16> %a)
define <32 x i16> @narrow(<32 x i16> %a) {
  %c = call <32 x i16> @llvm.ctpop.v32i16(<32 x i16> %a)
  ret <32 x i16> %c
}

; CHECK-LABEL: define <16 x i32> @used_twice(
; CHECK: %[[C:.+]] = call <16 x i32> @llvm.x86.avx512.pmaddw.d.512
; CHECK: %[[T:.+]] = add <16 x i32> %b, %[[C]]
; CHECK: mul <16 x i32> %[[T]], %[[C]]
define <16 x i32> @used_twice(<16 x i32> %a, <16 x i32> %b) {
  %c = call <16 x i32> @llvm.ctpop.v16i32(<16 x i32> %a)
  %t = add <16 x i32> %b, %c
  %r = mul <16 x i32> %t, %c
  ret <16 x i32> %r
}
