; A load after a store to an address with the same low 12 bits waits for that store. So a loop loads eight vectors,
; stores them, and then loads the next eight.
; RUN: kiln-opt --passes=pressure-scheduler %s | FileCheck %s

; CHECK-LABEL: @copies(
; CHECK: loop:
; CHECK-NOT: store
; CHECK-COUNT-8: load <8 x float>
; CHECK-NOT: = load
; CHECK-COUNT-8: store <8 x float>
; CHECK-NOT: store
; CHECK-COUNT-8: load <8 x float>
; CHECK-NOT: = load
; CHECK-COUNT-8: store <8 x float>
; CHECK-NOT: {{= load|store <}}
; CHECK: br i1
define void @copies(ptr noalias %from, ptr noalias %to, i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %in = getelementptr i8, ptr %from, i32 %i
  %out = getelementptr i8, ptr %to, i32 %i
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
  %in12 = getelementptr i8, ptr %in, i64 384
  %out12 = getelementptr i8, ptr %out, i64 384
  %in13 = getelementptr i8, ptr %in, i64 416
  %out13 = getelementptr i8, ptr %out, i64 416
  %in14 = getelementptr i8, ptr %in, i64 448
  %out14 = getelementptr i8, ptr %out, i64 448
  %in15 = getelementptr i8, ptr %in, i64 480
  %out15 = getelementptr i8, ptr %out, i64 480
  %x0.0 = load <8 x float>, ptr %in0, align 4, !invariant.load !0
  %x0.1 = fmul <8 x float> %x0.0, %x0.0
  %x0.2 = fmul <8 x float> %x0.1, %x0.1
  store <8 x float> %x0.2, ptr %out0, align 4
  %x1.0 = load <8 x float>, ptr %in1, align 4, !invariant.load !0
  %x1.1 = fmul <8 x float> %x1.0, %x1.0
  %x1.2 = fmul <8 x float> %x1.1, %x1.1
  store <8 x float> %x1.2, ptr %out1, align 4
  %x2.0 = load <8 x float>, ptr %in2, align 4, !invariant.load !0
  %x2.1 = fmul <8 x float> %x2.0, %x2.0
  %x2.2 = fmul <8 x float> %x2.1, %x2.1
  store <8 x float> %x2.2, ptr %out2, align 4
  %x3.0 = load <8 x float>, ptr %in3, align 4, !invariant.load !0
  %x3.1 = fmul <8 x float> %x3.0, %x3.0
  %x3.2 = fmul <8 x float> %x3.1, %x3.1
  store <8 x float> %x3.2, ptr %out3, align 4
  %x4.0 = load <8 x float>, ptr %in4, align 4, !invariant.load !0
  %x4.1 = fmul <8 x float> %x4.0, %x4.0
  %x4.2 = fmul <8 x float> %x4.1, %x4.1
  store <8 x float> %x4.2, ptr %out4, align 4
  %x5.0 = load <8 x float>, ptr %in5, align 4, !invariant.load !0
  %x5.1 = fmul <8 x float> %x5.0, %x5.0
  %x5.2 = fmul <8 x float> %x5.1, %x5.1
  store <8 x float> %x5.2, ptr %out5, align 4
  %x6.0 = load <8 x float>, ptr %in6, align 4, !invariant.load !0
  %x6.1 = fmul <8 x float> %x6.0, %x6.0
  %x6.2 = fmul <8 x float> %x6.1, %x6.1
  store <8 x float> %x6.2, ptr %out6, align 4
  %x7.0 = load <8 x float>, ptr %in7, align 4, !invariant.load !0
  %x7.1 = fmul <8 x float> %x7.0, %x7.0
  %x7.2 = fmul <8 x float> %x7.1, %x7.1
  store <8 x float> %x7.2, ptr %out7, align 4
  %x8.0 = load <8 x float>, ptr %in8, align 4, !invariant.load !0
  %x8.1 = fmul <8 x float> %x8.0, %x8.0
  %x8.2 = fmul <8 x float> %x8.1, %x8.1
  store <8 x float> %x8.2, ptr %out8, align 4
  %x9.0 = load <8 x float>, ptr %in9, align 4, !invariant.load !0
  %x9.1 = fmul <8 x float> %x9.0, %x9.0
  %x9.2 = fmul <8 x float> %x9.1, %x9.1
  store <8 x float> %x9.2, ptr %out9, align 4
  %x10.0 = load <8 x float>, ptr %in10, align 4, !invariant.load !0
  %x10.1 = fmul <8 x float> %x10.0, %x10.0
  %x10.2 = fmul <8 x float> %x10.1, %x10.1
  store <8 x float> %x10.2, ptr %out10, align 4
  %x11.0 = load <8 x float>, ptr %in11, align 4, !invariant.load !0
  %x11.1 = fmul <8 x float> %x11.0, %x11.0
  %x11.2 = fmul <8 x float> %x11.1, %x11.1
  store <8 x float> %x11.2, ptr %out11, align 4
  %x12.0 = load <8 x float>, ptr %in12, align 4, !invariant.load !0
  %x12.1 = fmul <8 x float> %x12.0, %x12.0
  %x12.2 = fmul <8 x float> %x12.1, %x12.1
  store <8 x float> %x12.2, ptr %out12, align 4
  %x13.0 = load <8 x float>, ptr %in13, align 4, !invariant.load !0
  %x13.1 = fmul <8 x float> %x13.0, %x13.0
  %x13.2 = fmul <8 x float> %x13.1, %x13.1
  store <8 x float> %x13.2, ptr %out13, align 4
  %x14.0 = load <8 x float>, ptr %in14, align 4, !invariant.load !0
  %x14.1 = fmul <8 x float> %x14.0, %x14.0
  %x14.2 = fmul <8 x float> %x14.1, %x14.1
  store <8 x float> %x14.2, ptr %out14, align 4
  %x15.0 = load <8 x float>, ptr %in15, align 4, !invariant.load !0
  %x15.1 = fmul <8 x float> %x15.0, %x15.0
  %x15.2 = fmul <8 x float> %x15.1, %x15.1
  store <8 x float> %x15.2, ptr %out15, align 4
  %next = add i32 %i, 512
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

!0 = !{}
