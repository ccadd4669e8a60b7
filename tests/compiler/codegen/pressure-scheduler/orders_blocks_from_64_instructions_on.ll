; A shorter block is not worth it: its vectors stay whole, and all loads stay before the stores.
; RUN: kiln-opt --passes=pressure-scheduler %s | FileCheck %s

; CHECK-LABEL: @has_63_instructions(
; CHECK-NOT: <8 x float>
; CHECK: %x2.0 = load <32 x float>
; CHECK: store <32 x float> {{.*}}, ptr %out0
; CHECK: ret void
define void @has_63_instructions(ptr noalias %in, ptr noalias %out, i32 %n) {
  %in0 = getelementptr i8, ptr %in, i64 0
  %out0 = getelementptr i8, ptr %out, i64 0
  %in1 = getelementptr i8, ptr %in, i64 128
  %out1 = getelementptr i8, ptr %out, i64 128
  %in2 = getelementptr i8, ptr %in, i64 256
  %out2 = getelementptr i8, ptr %out, i64 256
  %x0.0 = load <32 x float>, ptr %in0, align 4, !invariant.load !0
  %x1.0 = load <32 x float>, ptr %in1, align 4, !invariant.load !0
  %x2.0 = load <32 x float>, ptr %in2, align 4, !invariant.load !0
  %x0.1 = fmul <32 x float> %x0.0, %x0.0
  %x1.1 = fmul <32 x float> %x1.0, %x1.0
  %x2.1 = fmul <32 x float> %x2.0, %x2.0
  %x0.2 = fmul <32 x float> %x0.1, %x0.1
  %x1.2 = fmul <32 x float> %x1.1, %x1.1
  %x2.2 = fmul <32 x float> %x2.1, %x2.1
  %x0.3 = fmul <32 x float> %x0.2, %x0.2
  %x1.3 = fmul <32 x float> %x1.2, %x1.2
  %x2.3 = fmul <32 x float> %x2.2, %x2.2
  %x0.4 = fmul <32 x float> %x0.3, %x0.3
  %x1.4 = fmul <32 x float> %x1.3, %x1.3
  %x2.4 = fmul <32 x float> %x2.3, %x2.3
  %x0.5 = fmul <32 x float> %x0.4, %x0.4
  %x1.5 = fmul <32 x float> %x1.4, %x1.4
  %x2.5 = fmul <32 x float> %x2.4, %x2.4
  %x0.6 = fmul <32 x float> %x0.5, %x0.5
  %x1.6 = fmul <32 x float> %x1.5, %x1.5
  %x2.6 = fmul <32 x float> %x2.5, %x2.5
  %x0.7 = fmul <32 x float> %x0.6, %x0.6
  %x1.7 = fmul <32 x float> %x1.6, %x1.6
  %x2.7 = fmul <32 x float> %x2.6, %x2.6
  %x0.8 = fmul <32 x float> %x0.7, %x0.7
  %x1.8 = fmul <32 x float> %x1.7, %x1.7
  %x2.8 = fmul <32 x float> %x2.7, %x2.7
  %x0.9 = fmul <32 x float> %x0.8, %x0.8
  %x1.9 = fmul <32 x float> %x1.8, %x1.8
  %x2.9 = fmul <32 x float> %x2.8, %x2.8
  %x0.10 = fmul <32 x float> %x0.9, %x0.9
  %x1.10 = fmul <32 x float> %x1.9, %x1.9
  %x2.10 = fmul <32 x float> %x2.9, %x2.9
  %x0.11 = fmul <32 x float> %x0.10, %x0.10
  %x1.11 = fmul <32 x float> %x1.10, %x1.10
  %x2.11 = fmul <32 x float> %x2.10, %x2.10
  %x0.12 = fmul <32 x float> %x0.11, %x0.11
  %x1.12 = fmul <32 x float> %x1.11, %x1.11
  %x2.12 = fmul <32 x float> %x2.11, %x2.11
  %x0.13 = fmul <32 x float> %x0.12, %x0.12
  %x1.13 = fmul <32 x float> %x1.12, %x1.12
  %x2.13 = fmul <32 x float> %x2.12, %x2.12
  store <32 x float> %x0.13, ptr %out0, align 4
  store <32 x float> %x1.13, ptr %out1, align 4
  store <32 x float> %x2.13, ptr %out2, align 4
  %pad0 = add i32 %n, 0
  %pad1 = add i32 %n, 1
  %pad2 = add i32 %n, 2
  %pad3 = add i32 %n, 3
  %pad4 = add i32 %n, 4
  %pad5 = add i32 %n, 5
  %pad6 = add i32 %n, 6
  %pad7 = add i32 %n, 7
  %pad8 = add i32 %n, 8
  %pad9 = add i32 %n, 9
  %pad10 = add i32 %n, 10
  ret void
}

; CHECK-LABEL: @has_64_instructions(
; CHECK: store <8 x float> {{.*}}, ptr %out0
; CHECK: load <8 x float>, ptr %in2
define void @has_64_instructions(ptr noalias %in, ptr noalias %out, i32 %n) {
  %in0 = getelementptr i8, ptr %in, i64 0
  %out0 = getelementptr i8, ptr %out, i64 0
  %in1 = getelementptr i8, ptr %in, i64 128
  %out1 = getelementptr i8, ptr %out, i64 128
  %in2 = getelementptr i8, ptr %in, i64 256
  %out2 = getelementptr i8, ptr %out, i64 256
  %x0.0 = load <32 x float>, ptr %in0, align 4, !invariant.load !0
  %x1.0 = load <32 x float>, ptr %in1, align 4, !invariant.load !0
  %x2.0 = load <32 x float>, ptr %in2, align 4, !invariant.load !0
  %x0.1 = fmul <32 x float> %x0.0, %x0.0
  %x1.1 = fmul <32 x float> %x1.0, %x1.0
  %x2.1 = fmul <32 x float> %x2.0, %x2.0
  %x0.2 = fmul <32 x float> %x0.1, %x0.1
  %x1.2 = fmul <32 x float> %x1.1, %x1.1
  %x2.2 = fmul <32 x float> %x2.1, %x2.1
  %x0.3 = fmul <32 x float> %x0.2, %x0.2
  %x1.3 = fmul <32 x float> %x1.2, %x1.2
  %x2.3 = fmul <32 x float> %x2.2, %x2.2
  %x0.4 = fmul <32 x float> %x0.3, %x0.3
  %x1.4 = fmul <32 x float> %x1.3, %x1.3
  %x2.4 = fmul <32 x float> %x2.3, %x2.3
  %x0.5 = fmul <32 x float> %x0.4, %x0.4
  %x1.5 = fmul <32 x float> %x1.4, %x1.4
  %x2.5 = fmul <32 x float> %x2.4, %x2.4
  %x0.6 = fmul <32 x float> %x0.5, %x0.5
  %x1.6 = fmul <32 x float> %x1.5, %x1.5
  %x2.6 = fmul <32 x float> %x2.5, %x2.5
  %x0.7 = fmul <32 x float> %x0.6, %x0.6
  %x1.7 = fmul <32 x float> %x1.6, %x1.6
  %x2.7 = fmul <32 x float> %x2.6, %x2.6
  %x0.8 = fmul <32 x float> %x0.7, %x0.7
  %x1.8 = fmul <32 x float> %x1.7, %x1.7
  %x2.8 = fmul <32 x float> %x2.7, %x2.7
  %x0.9 = fmul <32 x float> %x0.8, %x0.8
  %x1.9 = fmul <32 x float> %x1.8, %x1.8
  %x2.9 = fmul <32 x float> %x2.8, %x2.8
  %x0.10 = fmul <32 x float> %x0.9, %x0.9
  %x1.10 = fmul <32 x float> %x1.9, %x1.9
  %x2.10 = fmul <32 x float> %x2.9, %x2.9
  %x0.11 = fmul <32 x float> %x0.10, %x0.10
  %x1.11 = fmul <32 x float> %x1.10, %x1.10
  %x2.11 = fmul <32 x float> %x2.10, %x2.10
  %x0.12 = fmul <32 x float> %x0.11, %x0.11
  %x1.12 = fmul <32 x float> %x1.11, %x1.11
  %x2.12 = fmul <32 x float> %x2.11, %x2.11
  %x0.13 = fmul <32 x float> %x0.12, %x0.12
  %x1.13 = fmul <32 x float> %x1.12, %x1.12
  %x2.13 = fmul <32 x float> %x2.12, %x2.12
  store <32 x float> %x0.13, ptr %out0, align 4
  store <32 x float> %x1.13, ptr %out1, align 4
  store <32 x float> %x2.13, ptr %out2, align 4
  %pad0 = add i32 %n, 0
  %pad1 = add i32 %n, 1
  %pad2 = add i32 %n, 2
  %pad3 = add i32 %n, 3
  %pad4 = add i32 %n, 4
  %pad5 = add i32 %n, 5
  %pad6 = add i32 %n, 6
  %pad7 = add i32 %n, 7
  %pad8 = add i32 %n, 8
  %pad9 = add i32 %n, 9
  %pad10 = add i32 %n, 10
  %pad11 = add i32 %n, 11
  ret void
}

!0 = !{}
