; Without `invariant.load` a load may read what another result stores. Such a block is no stream, and its loads stay
; before its stores.
; RUN: kiln-opt --passes=pressure-scheduler %s | FileCheck %s

; CHECK-LABEL: @reads_what_may_be_written(
; CHECK: %x11.0 = load
; CHECK-NOT: {{= load|store <}}
; CHECK: store {{.*}} ptr %out0
; CHECK-NOT: = load
; CHECK: ret void
define void @reads_what_may_be_written(ptr noalias %in, ptr noalias %out, i32 %n) {
  %in0 = getelementptr i8, ptr %in, i64 0
  %out0 = getelementptr i8, ptr %out, i64 0
  %in1 = getelementptr i8, ptr %in, i64 32
  %out1 = getelementptr i8, ptr %out, i64 32
  %in2 = getelementptr i8, ptr %in, i64 64
  %out2 = getelementptr i8, ptr %out, i64 64
  %in3 = getelementptr i8, ptr %in, i64 96
  %out3 = getelementptr i8, ptr %out, i64 96
  %in4 = getelementptr i8, ptr %in, i64 128
  %out4 = getelementptr i8, ptr %out, i64 128
  %in5 = getelementptr i8, ptr %in, i64 160
  %out5 = getelementptr i8, ptr %out, i64 160
  %in6 = getelementptr i8, ptr %in, i64 192
  %out6 = getelementptr i8, ptr %out, i64 192
  %in7 = getelementptr i8, ptr %in, i64 224
  %out7 = getelementptr i8, ptr %out, i64 224
  %in8 = getelementptr i8, ptr %in, i64 256
  %out8 = getelementptr i8, ptr %out, i64 256
  %in9 = getelementptr i8, ptr %in, i64 288
  %out9 = getelementptr i8, ptr %out, i64 288
  %in10 = getelementptr i8, ptr %in, i64 320
  %out10 = getelementptr i8, ptr %out, i64 320
  %in11 = getelementptr i8, ptr %in, i64 352
  %out11 = getelementptr i8, ptr %out, i64 352
  %x0.0 = load <8 x float>, ptr %in0, align 4
  %x1.0 = load <8 x float>, ptr %in1, align 4
  %x2.0 = load <8 x float>, ptr %in2, align 4
  %x3.0 = load <8 x float>, ptr %in3, align 4
  %x4.0 = load <8 x float>, ptr %in4, align 4
  %x5.0 = load <8 x float>, ptr %in5, align 4
  %x6.0 = load <8 x float>, ptr %in6, align 4
  %x7.0 = load <8 x float>, ptr %in7, align 4
  %x8.0 = load <8 x float>, ptr %in8, align 4
  %x9.0 = load <8 x float>, ptr %in9, align 4
  %x10.0 = load <8 x float>, ptr %in10, align 4
  %x11.0 = load <8 x float>, ptr %in11, align 4
  %x0.1 = fmul <8 x float> %x0.0, %x0.0
  %x1.1 = fmul <8 x float> %x1.0, %x1.0
  %x2.1 = fmul <8 x float> %x2.0, %x2.0
  %x3.1 = fmul <8 x float> %x3.0, %x3.0
  %x4.1 = fmul <8 x float> %x4.0, %x4.0
  %x5.1 = fmul <8 x float> %x5.0, %x5.0
  %x6.1 = fmul <8 x float> %x6.0, %x6.0
  %x7.1 = fmul <8 x float> %x7.0, %x7.0
  %x8.1 = fmul <8 x float> %x8.0, %x8.0
  %x9.1 = fmul <8 x float> %x9.0, %x9.0
  %x10.1 = fmul <8 x float> %x10.0, %x10.0
  %x11.1 = fmul <8 x float> %x11.0, %x11.0
  %x0.2 = fmul <8 x float> %x0.1, %x0.1
  %x1.2 = fmul <8 x float> %x1.1, %x1.1
  %x2.2 = fmul <8 x float> %x2.1, %x2.1
  %x3.2 = fmul <8 x float> %x3.1, %x3.1
  %x4.2 = fmul <8 x float> %x4.1, %x4.1
  %x5.2 = fmul <8 x float> %x5.1, %x5.1
  %x6.2 = fmul <8 x float> %x6.1, %x6.1
  %x7.2 = fmul <8 x float> %x7.1, %x7.1
  %x8.2 = fmul <8 x float> %x8.1, %x8.1
  %x9.2 = fmul <8 x float> %x9.1, %x9.1
  %x10.2 = fmul <8 x float> %x10.1, %x10.1
  %x11.2 = fmul <8 x float> %x11.1, %x11.1
  %x0.3 = fmul <8 x float> %x0.2, %x0.2
  %x1.3 = fmul <8 x float> %x1.2, %x1.2
  %x2.3 = fmul <8 x float> %x2.2, %x2.2
  %x3.3 = fmul <8 x float> %x3.2, %x3.2
  %x4.3 = fmul <8 x float> %x4.2, %x4.2
  %x5.3 = fmul <8 x float> %x5.2, %x5.2
  %x6.3 = fmul <8 x float> %x6.2, %x6.2
  %x7.3 = fmul <8 x float> %x7.2, %x7.2
  %x8.3 = fmul <8 x float> %x8.2, %x8.2
  %x9.3 = fmul <8 x float> %x9.2, %x9.2
  %x10.3 = fmul <8 x float> %x10.2, %x10.2
  %x11.3 = fmul <8 x float> %x11.2, %x11.2
  %x0.4 = fmul <8 x float> %x0.3, %x0.3
  %x1.4 = fmul <8 x float> %x1.3, %x1.3
  %x2.4 = fmul <8 x float> %x2.3, %x2.3
  %x3.4 = fmul <8 x float> %x3.3, %x3.3
  %x4.4 = fmul <8 x float> %x4.3, %x4.3
  %x5.4 = fmul <8 x float> %x5.3, %x5.3
  %x6.4 = fmul <8 x float> %x6.3, %x6.3
  %x7.4 = fmul <8 x float> %x7.3, %x7.3
  %x8.4 = fmul <8 x float> %x8.3, %x8.3
  %x9.4 = fmul <8 x float> %x9.3, %x9.3
  %x10.4 = fmul <8 x float> %x10.3, %x10.3
  %x11.4 = fmul <8 x float> %x11.3, %x11.3
  store <8 x float> %x0.4, ptr %out0, align 4
  store <8 x float> %x1.4, ptr %out1, align 4
  store <8 x float> %x2.4, ptr %out2, align 4
  store <8 x float> %x3.4, ptr %out3, align 4
  store <8 x float> %x4.4, ptr %out4, align 4
  store <8 x float> %x5.4, ptr %out5, align 4
  store <8 x float> %x6.4, ptr %out6, align 4
  store <8 x float> %x7.4, ptr %out7, align 4
  store <8 x float> %x8.4, ptr %out8, align 4
  store <8 x float> %x9.4, ptr %out9, align 4
  store <8 x float> %x10.4, ptr %out10, align 4
  store <8 x float> %x11.4, ptr %out11, align 4
  ret void
}

!0 = !{}
