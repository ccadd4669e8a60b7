; The code generator would take these apart into lanes.
; RUN: kiln-opt --passes=half-operations %s | FileCheck %s

; CHECK-LABEL: define <8 x half> @rounded(
; CHECK-NEXT: %[[X:.*]] = fpext <8 x half> %x to <8 x float>
; CHECK-NEXT: %[[R:.*]] = call <8 x float> @llvm.trunc.v8f32(<8 x float> %[[X]])
; CHECK-NEXT: %[[H:.*]] = fptrunc <8 x float> %[[R]] to <8 x half>
; CHECK-NEXT: ret <8 x half> %[[H]]
define <8 x half> @rounded(<8 x half> %x) {
  %r = call <8 x half> @llvm.trunc.v8f16(<8 x half> %x)
  ret <8 x half> %r
}

; CHECK-LABEL: define <8 x half> @least(
; CHECK: call nnan <8 x float> @llvm.minnum.v8f32(
define <8 x half> @least(<8 x half> %x, <8 x half> %y) {
  %r = call nnan <8 x half> @llvm.minnum.v8f16(<8 x half> %x, <8 x half> %y)
  ret <8 x half> %r
}

; CHECK-LABEL: define <8 x i8> @small(
; CHECK-NEXT: %[[W:.*]] = fptosi <8 x half> %x to <8 x i32>
; CHECK-NEXT: trunc <8 x i32> %[[W]] to <8 x i8>
define <8 x i8> @small(<8 x half> %x) {
  %r = fptoui <8 x half> %x to <8 x i8>
  ret <8 x i8> %r
}

; One that is rounded alone is no vector, and what moves bits or adds needs no lanes.
; CHECK-LABEL: define half @others(
; CHECK-NOT: fpext
; CHECK: ret half
define half @others(half %x, <8 x half> %y) {
  %a = call half @llvm.trunc.f16(half %x)
  %b = call <8 x half> @llvm.fabs.v8f16(<8 x half> %y)
  %c = fadd <8 x half> %b, %y
  %d = extractelement <8 x half> %c, i32 0
  %r = fadd half %a, %d
  ret half %r
}
