; Vectors that are loaded, transformed and stored come step by step: all loads first, all stores last. The pass splits
; them into registers, and the first result is stored before the last one is loaded, so that memory is busy all the
; time.
; RUN: kiln-opt --passes=pressure-scheduler %s | FileCheck %s

; CHECK-LABEL: @stream(
; CHECK-NOT: <32 x float>
; CHECK: load <8 x float>, ptr %in0
; CHECK: store <8 x float> {{.*}}, ptr %out0
; CHECK: load <8 x float>, ptr %in3
; CHECK: store <8 x float> {{.*}}, ptr %out3
; CHECK: ret void
define void @stream(ptr noalias %in, ptr noalias %out, i32 %n) {
  %in0 = getelementptr i8, ptr %in, i64 0
  %out0 = getelementptr i8, ptr %out, i64 0
  %in1 = getelementptr i8, ptr %in, i64 128
  %out1 = getelementptr i8, ptr %out, i64 128
  %in2 = getelementptr i8, ptr %in, i64 256
  %out2 = getelementptr i8, ptr %out, i64 256
  %in3 = getelementptr i8, ptr %in, i64 384
  %out3 = getelementptr i8, ptr %out, i64 384
  %x0.0 = load <32 x float>, ptr %in0, align 4, !invariant.load !0
  %x1.0 = load <32 x float>, ptr %in1, align 4, !invariant.load !0
  %x2.0 = load <32 x float>, ptr %in2, align 4, !invariant.load !0
  %x3.0 = load <32 x float>, ptr %in3, align 4, !invariant.load !0
  %x0.1 = fmul <32 x float> %x0.0, %x0.0
  %x1.1 = fmul <32 x float> %x1.0, %x1.0
  %x2.1 = fmul <32 x float> %x2.0, %x2.0
  %x3.1 = fmul <32 x float> %x3.0, %x3.0
  %x0.2 = fmul <32 x float> %x0.1, %x0.1
  %x1.2 = fmul <32 x float> %x1.1, %x1.1
  %x2.2 = fmul <32 x float> %x2.1, %x2.1
  %x3.2 = fmul <32 x float> %x3.1, %x3.1
  %x0.3 = fmul <32 x float> %x0.2, %x0.2
  %x1.3 = fmul <32 x float> %x1.2, %x1.2
  %x2.3 = fmul <32 x float> %x2.2, %x2.2
  %x3.3 = fmul <32 x float> %x3.2, %x3.2
  %x0.4 = fmul <32 x float> %x0.3, %x0.3
  %x1.4 = fmul <32 x float> %x1.3, %x1.3
  %x2.4 = fmul <32 x float> %x2.3, %x2.3
  %x3.4 = fmul <32 x float> %x3.3, %x3.3
  %x0.5 = fmul <32 x float> %x0.4, %x0.4
  %x1.5 = fmul <32 x float> %x1.4, %x1.4
  %x2.5 = fmul <32 x float> %x2.4, %x2.4
  %x3.5 = fmul <32 x float> %x3.4, %x3.4
  %x0.6 = fmul <32 x float> %x0.5, %x0.5
  %x1.6 = fmul <32 x float> %x1.5, %x1.5
  %x2.6 = fmul <32 x float> %x2.5, %x2.5
  %x3.6 = fmul <32 x float> %x3.5, %x3.5
  %x0.7 = fmul <32 x float> %x0.6, %x0.6
  %x1.7 = fmul <32 x float> %x1.6, %x1.6
  %x2.7 = fmul <32 x float> %x2.6, %x2.6
  %x3.7 = fmul <32 x float> %x3.6, %x3.6
  %x0.8 = fmul <32 x float> %x0.7, %x0.7
  %x1.8 = fmul <32 x float> %x1.7, %x1.7
  %x2.8 = fmul <32 x float> %x2.7, %x2.7
  %x3.8 = fmul <32 x float> %x3.7, %x3.7
  %x0.9 = fmul <32 x float> %x0.8, %x0.8
  %x1.9 = fmul <32 x float> %x1.8, %x1.8
  %x2.9 = fmul <32 x float> %x2.8, %x2.8
  %x3.9 = fmul <32 x float> %x3.8, %x3.8
  %x0.10 = fmul <32 x float> %x0.9, %x0.9
  %x1.10 = fmul <32 x float> %x1.9, %x1.9
  %x2.10 = fmul <32 x float> %x2.9, %x2.9
  %x3.10 = fmul <32 x float> %x3.9, %x3.9
  %x0.11 = fmul <32 x float> %x0.10, %x0.10
  %x1.11 = fmul <32 x float> %x1.10, %x1.10
  %x2.11 = fmul <32 x float> %x2.10, %x2.10
  %x3.11 = fmul <32 x float> %x3.10, %x3.10
  %x0.12 = fmul <32 x float> %x0.11, %x0.11
  %x1.12 = fmul <32 x float> %x1.11, %x1.11
  %x2.12 = fmul <32 x float> %x2.11, %x2.11
  %x3.12 = fmul <32 x float> %x3.11, %x3.11
  %x0.13 = fmul <32 x float> %x0.12, %x0.12
  %x1.13 = fmul <32 x float> %x1.12, %x1.12
  %x2.13 = fmul <32 x float> %x2.12, %x2.12
  %x3.13 = fmul <32 x float> %x3.12, %x3.12
  %x0.14 = fmul <32 x float> %x0.13, %x0.13
  %x1.14 = fmul <32 x float> %x1.13, %x1.13
  %x2.14 = fmul <32 x float> %x2.13, %x2.13
  %x3.14 = fmul <32 x float> %x3.13, %x3.13
  store <32 x float> %x0.14, ptr %out0, align 4
  store <32 x float> %x1.14, ptr %out1, align 4
  store <32 x float> %x2.14, ptr %out2, align 4
  store <32 x float> %x3.14, ptr %out3, align 4
  ret void
}

!0 = !{}
