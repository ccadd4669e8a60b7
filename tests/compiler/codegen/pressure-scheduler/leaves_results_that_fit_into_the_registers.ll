; 14 results and the vector that they begin with fit into 16 registers: nothing would be reloaded, and the order stays.
; RUN: kiln-opt --passes=pressure-scheduler %s | FileCheck %s

; CHECK-LABEL: @fits(
; CHECK: %x0.0 = fadd
; CHECK-NOT: store
; CHECK: %x13.4 = fmul
; CHECK-NEXT: store <8 x float> %x0.4, ptr %out0
define void @fits(<8 x float> %x, ptr %out) {
  %out0 = getelementptr i8, ptr %out, i64 0
  %out1 = getelementptr i8, ptr %out, i64 32
  %out2 = getelementptr i8, ptr %out, i64 64
  %out3 = getelementptr i8, ptr %out, i64 96
  %out4 = getelementptr i8, ptr %out, i64 128
  %out5 = getelementptr i8, ptr %out, i64 160
  %out6 = getelementptr i8, ptr %out, i64 192
  %out7 = getelementptr i8, ptr %out, i64 224
  %out8 = getelementptr i8, ptr %out, i64 256
  %out9 = getelementptr i8, ptr %out, i64 288
  %out10 = getelementptr i8, ptr %out, i64 320
  %out11 = getelementptr i8, ptr %out, i64 352
  %out12 = getelementptr i8, ptr %out, i64 384
  %out13 = getelementptr i8, ptr %out, i64 416
  %x0.0 = fadd <8 x float> %x, splat (float 1.0)
  %x1.0 = fadd <8 x float> %x, splat (float 2.0)
  %x2.0 = fadd <8 x float> %x, splat (float 3.0)
  %x3.0 = fadd <8 x float> %x, splat (float 4.0)
  %x4.0 = fadd <8 x float> %x, splat (float 5.0)
  %x5.0 = fadd <8 x float> %x, splat (float 6.0)
  %x6.0 = fadd <8 x float> %x, splat (float 7.0)
  %x7.0 = fadd <8 x float> %x, splat (float 8.0)
  %x8.0 = fadd <8 x float> %x, splat (float 9.0)
  %x9.0 = fadd <8 x float> %x, splat (float 10.0)
  %x10.0 = fadd <8 x float> %x, splat (float 11.0)
  %x11.0 = fadd <8 x float> %x, splat (float 12.0)
  %x12.0 = fadd <8 x float> %x, splat (float 13.0)
  %x13.0 = fadd <8 x float> %x, splat (float 14.0)
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
  %x12.1 = fmul <8 x float> %x12.0, %x12.0
  %x13.1 = fmul <8 x float> %x13.0, %x13.0
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
  %x12.2 = fmul <8 x float> %x12.1, %x12.1
  %x13.2 = fmul <8 x float> %x13.1, %x13.1
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
  %x12.3 = fmul <8 x float> %x12.2, %x12.2
  %x13.3 = fmul <8 x float> %x13.2, %x13.2
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
  %x12.4 = fmul <8 x float> %x12.3, %x12.3
  %x13.4 = fmul <8 x float> %x13.3, %x13.3
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
  store <8 x float> %x12.4, ptr %out12, align 4
  store <8 x float> %x13.4, ptr %out13, align 4
  ret void
}
