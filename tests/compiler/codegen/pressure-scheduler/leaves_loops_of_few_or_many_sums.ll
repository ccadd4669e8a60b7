; Borders: three sums are too few to interleave, and nine sums take more than a quarter of 32 registers. Eight are
; interleaved, four at a time.
; RUN: kiln-opt --passes=pressure-scheduler --cpu=x86-64-v4 %s | FileCheck %s

; CHECK-LABEL: @three(
; CHECK: %s0.0 = fadd
; CHECK-NOT: %s1.
; CHECK: %sum0.next = fadd
; CHECK: %s1.0 = fadd
; CHECK-NOT: %s2.
; CHECK: %sum1.next = fadd
define void @three(ptr noalias %from, ptr noalias %out, i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum0 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum0.next, %loop ]
  %sum1 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum1.next, %loop ]
  %sum2 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum2.next, %loop ]
  %in = getelementptr i8, ptr %from, i32 %i
  %x.0 = load <16 x float>, ptr %in, align 4, !invariant.load !0
  %x.1 = fmul <16 x float> %x.0, %x.0
  %x.2 = fmul <16 x float> %x.1, %x.1
  %x.3 = fmul <16 x float> %x.2, %x.2
  %x.4 = fmul <16 x float> %x.3, %x.3
  %x.5 = fmul <16 x float> %x.4, %x.4
  %x.6 = fmul <16 x float> %x.5, %x.5
  %x.7 = fmul <16 x float> %x.6, %x.6
  %x.8 = fmul <16 x float> %x.7, %x.7
  %x.9 = fmul <16 x float> %x.8, %x.8
  %x.10 = fmul <16 x float> %x.9, %x.9
  %x.11 = fmul <16 x float> %x.10, %x.10
  %x.12 = fmul <16 x float> %x.11, %x.11
  %x.13 = fmul <16 x float> %x.12, %x.12
  %x.14 = fmul <16 x float> %x.13, %x.13
  %x.15 = fmul <16 x float> %x.14, %x.14
  %x.16 = fmul <16 x float> %x.15, %x.15
  %s0.0 = fadd <16 x float> %x.16, splat (float 1.0)
  %s0.1 = fadd <16 x float> %s0.0, splat (float 1.0)
  %s0.2 = fadd <16 x float> %s0.1, splat (float 1.0)
  %s0.3 = fadd <16 x float> %s0.2, splat (float 1.0)
  %s0.4 = fadd <16 x float> %s0.3, splat (float 1.0)
  %s0.5 = fadd <16 x float> %s0.4, splat (float 1.0)
  %s0.6 = fadd <16 x float> %s0.5, splat (float 1.0)
  %s0.7 = fadd <16 x float> %s0.6, splat (float 1.0)
  %s0.8 = fadd <16 x float> %s0.7, splat (float 1.0)
  %s0.9 = fadd <16 x float> %s0.8, splat (float 1.0)
  %s0.10 = fadd <16 x float> %s0.9, splat (float 1.0)
  %s0.11 = fadd <16 x float> %s0.10, splat (float 1.0)
  %s0.12 = fadd <16 x float> %s0.11, splat (float 1.0)
  %s0.13 = fadd <16 x float> %s0.12, splat (float 1.0)
  %s0.14 = fadd <16 x float> %s0.13, splat (float 1.0)
  %s0.15 = fadd <16 x float> %s0.14, splat (float 1.0)
  %sum0.next = fadd <16 x float> %sum0, %s0.15
  %s1.0 = fadd <16 x float> %x.16, splat (float 2.0)
  %s1.1 = fadd <16 x float> %s1.0, splat (float 2.0)
  %s1.2 = fadd <16 x float> %s1.1, splat (float 2.0)
  %s1.3 = fadd <16 x float> %s1.2, splat (float 2.0)
  %s1.4 = fadd <16 x float> %s1.3, splat (float 2.0)
  %s1.5 = fadd <16 x float> %s1.4, splat (float 2.0)
  %s1.6 = fadd <16 x float> %s1.5, splat (float 2.0)
  %s1.7 = fadd <16 x float> %s1.6, splat (float 2.0)
  %s1.8 = fadd <16 x float> %s1.7, splat (float 2.0)
  %s1.9 = fadd <16 x float> %s1.8, splat (float 2.0)
  %s1.10 = fadd <16 x float> %s1.9, splat (float 2.0)
  %s1.11 = fadd <16 x float> %s1.10, splat (float 2.0)
  %s1.12 = fadd <16 x float> %s1.11, splat (float 2.0)
  %s1.13 = fadd <16 x float> %s1.12, splat (float 2.0)
  %s1.14 = fadd <16 x float> %s1.13, splat (float 2.0)
  %s1.15 = fadd <16 x float> %s1.14, splat (float 2.0)
  %sum1.next = fadd <16 x float> %sum1, %s1.15
  %s2.0 = fadd <16 x float> %x.16, splat (float 3.0)
  %s2.1 = fadd <16 x float> %s2.0, splat (float 3.0)
  %s2.2 = fadd <16 x float> %s2.1, splat (float 3.0)
  %s2.3 = fadd <16 x float> %s2.2, splat (float 3.0)
  %s2.4 = fadd <16 x float> %s2.3, splat (float 3.0)
  %s2.5 = fadd <16 x float> %s2.4, splat (float 3.0)
  %s2.6 = fadd <16 x float> %s2.5, splat (float 3.0)
  %s2.7 = fadd <16 x float> %s2.6, splat (float 3.0)
  %s2.8 = fadd <16 x float> %s2.7, splat (float 3.0)
  %s2.9 = fadd <16 x float> %s2.8, splat (float 3.0)
  %s2.10 = fadd <16 x float> %s2.9, splat (float 3.0)
  %s2.11 = fadd <16 x float> %s2.10, splat (float 3.0)
  %s2.12 = fadd <16 x float> %s2.11, splat (float 3.0)
  %s2.13 = fadd <16 x float> %s2.12, splat (float 3.0)
  %s2.14 = fadd <16 x float> %s2.13, splat (float 3.0)
  %s2.15 = fadd <16 x float> %s2.14, splat (float 3.0)
  %sum2.next = fadd <16 x float> %sum2, %s2.15

  %next = add i32 %i, 64
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  %to0 = getelementptr i8, ptr %out, i64 0
  store <16 x float> %sum0.next, ptr %to0, align 4
  %to1 = getelementptr i8, ptr %out, i64 64
  store <16 x float> %sum1.next, ptr %to1, align 4
  %to2 = getelementptr i8, ptr %out, i64 128
  store <16 x float> %sum2.next, ptr %to2, align 4
  ret void
}

; CHECK-LABEL: @eight(
; CHECK: %s0.0 = fadd
; CHECK: %s1.0 = fadd
; CHECK: %sum0.next = fadd
define void @eight(ptr noalias %from, ptr noalias %out, i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum0 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum0.next, %loop ]
  %sum1 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum1.next, %loop ]
  %sum2 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum2.next, %loop ]
  %sum3 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum3.next, %loop ]
  %sum4 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum4.next, %loop ]
  %sum5 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum5.next, %loop ]
  %sum6 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum6.next, %loop ]
  %sum7 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum7.next, %loop ]
  %in = getelementptr i8, ptr %from, i32 %i
  %x.0 = load <16 x float>, ptr %in, align 4, !invariant.load !0
  %x.1 = fmul <16 x float> %x.0, %x.0
  %x.2 = fmul <16 x float> %x.1, %x.1
  %x.3 = fmul <16 x float> %x.2, %x.2
  %x.4 = fmul <16 x float> %x.3, %x.3
  %x.5 = fmul <16 x float> %x.4, %x.4
  %x.6 = fmul <16 x float> %x.5, %x.5
  %x.7 = fmul <16 x float> %x.6, %x.6
  %x.8 = fmul <16 x float> %x.7, %x.7
  %s0.0 = fadd <16 x float> %x.8, splat (float 1.0)
  %s0.1 = fadd <16 x float> %s0.0, splat (float 1.0)
  %s0.2 = fadd <16 x float> %s0.1, splat (float 1.0)
  %s0.3 = fadd <16 x float> %s0.2, splat (float 1.0)
  %s0.4 = fadd <16 x float> %s0.3, splat (float 1.0)
  %s0.5 = fadd <16 x float> %s0.4, splat (float 1.0)
  %s0.6 = fadd <16 x float> %s0.5, splat (float 1.0)
  %s0.7 = fadd <16 x float> %s0.6, splat (float 1.0)
  %sum0.next = fadd <16 x float> %sum0, %s0.7
  %s1.0 = fadd <16 x float> %x.8, splat (float 2.0)
  %s1.1 = fadd <16 x float> %s1.0, splat (float 2.0)
  %s1.2 = fadd <16 x float> %s1.1, splat (float 2.0)
  %s1.3 = fadd <16 x float> %s1.2, splat (float 2.0)
  %s1.4 = fadd <16 x float> %s1.3, splat (float 2.0)
  %s1.5 = fadd <16 x float> %s1.4, splat (float 2.0)
  %s1.6 = fadd <16 x float> %s1.5, splat (float 2.0)
  %s1.7 = fadd <16 x float> %s1.6, splat (float 2.0)
  %sum1.next = fadd <16 x float> %sum1, %s1.7
  %s2.0 = fadd <16 x float> %x.8, splat (float 3.0)
  %s2.1 = fadd <16 x float> %s2.0, splat (float 3.0)
  %s2.2 = fadd <16 x float> %s2.1, splat (float 3.0)
  %s2.3 = fadd <16 x float> %s2.2, splat (float 3.0)
  %s2.4 = fadd <16 x float> %s2.3, splat (float 3.0)
  %s2.5 = fadd <16 x float> %s2.4, splat (float 3.0)
  %s2.6 = fadd <16 x float> %s2.5, splat (float 3.0)
  %s2.7 = fadd <16 x float> %s2.6, splat (float 3.0)
  %sum2.next = fadd <16 x float> %sum2, %s2.7
  %s3.0 = fadd <16 x float> %x.8, splat (float 4.0)
  %s3.1 = fadd <16 x float> %s3.0, splat (float 4.0)
  %s3.2 = fadd <16 x float> %s3.1, splat (float 4.0)
  %s3.3 = fadd <16 x float> %s3.2, splat (float 4.0)
  %s3.4 = fadd <16 x float> %s3.3, splat (float 4.0)
  %s3.5 = fadd <16 x float> %s3.4, splat (float 4.0)
  %s3.6 = fadd <16 x float> %s3.5, splat (float 4.0)
  %s3.7 = fadd <16 x float> %s3.6, splat (float 4.0)
  %sum3.next = fadd <16 x float> %sum3, %s3.7
  %s4.0 = fadd <16 x float> %x.8, splat (float 5.0)
  %s4.1 = fadd <16 x float> %s4.0, splat (float 5.0)
  %s4.2 = fadd <16 x float> %s4.1, splat (float 5.0)
  %s4.3 = fadd <16 x float> %s4.2, splat (float 5.0)
  %s4.4 = fadd <16 x float> %s4.3, splat (float 5.0)
  %s4.5 = fadd <16 x float> %s4.4, splat (float 5.0)
  %s4.6 = fadd <16 x float> %s4.5, splat (float 5.0)
  %s4.7 = fadd <16 x float> %s4.6, splat (float 5.0)
  %sum4.next = fadd <16 x float> %sum4, %s4.7
  %s5.0 = fadd <16 x float> %x.8, splat (float 6.0)
  %s5.1 = fadd <16 x float> %s5.0, splat (float 6.0)
  %s5.2 = fadd <16 x float> %s5.1, splat (float 6.0)
  %s5.3 = fadd <16 x float> %s5.2, splat (float 6.0)
  %s5.4 = fadd <16 x float> %s5.3, splat (float 6.0)
  %s5.5 = fadd <16 x float> %s5.4, splat (float 6.0)
  %s5.6 = fadd <16 x float> %s5.5, splat (float 6.0)
  %s5.7 = fadd <16 x float> %s5.6, splat (float 6.0)
  %sum5.next = fadd <16 x float> %sum5, %s5.7
  %s6.0 = fadd <16 x float> %x.8, splat (float 7.0)
  %s6.1 = fadd <16 x float> %s6.0, splat (float 7.0)
  %s6.2 = fadd <16 x float> %s6.1, splat (float 7.0)
  %s6.3 = fadd <16 x float> %s6.2, splat (float 7.0)
  %s6.4 = fadd <16 x float> %s6.3, splat (float 7.0)
  %s6.5 = fadd <16 x float> %s6.4, splat (float 7.0)
  %s6.6 = fadd <16 x float> %s6.5, splat (float 7.0)
  %s6.7 = fadd <16 x float> %s6.6, splat (float 7.0)
  %sum6.next = fadd <16 x float> %sum6, %s6.7
  %s7.0 = fadd <16 x float> %x.8, splat (float 8.0)
  %s7.1 = fadd <16 x float> %s7.0, splat (float 8.0)
  %s7.2 = fadd <16 x float> %s7.1, splat (float 8.0)
  %s7.3 = fadd <16 x float> %s7.2, splat (float 8.0)
  %s7.4 = fadd <16 x float> %s7.3, splat (float 8.0)
  %s7.5 = fadd <16 x float> %s7.4, splat (float 8.0)
  %s7.6 = fadd <16 x float> %s7.5, splat (float 8.0)
  %s7.7 = fadd <16 x float> %s7.6, splat (float 8.0)
  %sum7.next = fadd <16 x float> %sum7, %s7.7

  %next = add i32 %i, 64
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  %to0 = getelementptr i8, ptr %out, i64 0
  store <16 x float> %sum0.next, ptr %to0, align 4
  %to1 = getelementptr i8, ptr %out, i64 64
  store <16 x float> %sum1.next, ptr %to1, align 4
  %to2 = getelementptr i8, ptr %out, i64 128
  store <16 x float> %sum2.next, ptr %to2, align 4
  %to3 = getelementptr i8, ptr %out, i64 192
  store <16 x float> %sum3.next, ptr %to3, align 4
  %to4 = getelementptr i8, ptr %out, i64 256
  store <16 x float> %sum4.next, ptr %to4, align 4
  %to5 = getelementptr i8, ptr %out, i64 320
  store <16 x float> %sum5.next, ptr %to5, align 4
  %to6 = getelementptr i8, ptr %out, i64 384
  store <16 x float> %sum6.next, ptr %to6, align 4
  %to7 = getelementptr i8, ptr %out, i64 448
  store <16 x float> %sum7.next, ptr %to7, align 4
  ret void
}

; CHECK-LABEL: @nine(
; CHECK: %s0.0 = fadd
; CHECK-NOT: %s1.
; CHECK: %sum0.next = fadd
; CHECK: %s1.0 = fadd
; CHECK-NOT: %s2.
; CHECK: %sum1.next = fadd
define void @nine(ptr noalias %from, ptr noalias %out, i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum0 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum0.next, %loop ]
  %sum1 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum1.next, %loop ]
  %sum2 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum2.next, %loop ]
  %sum3 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum3.next, %loop ]
  %sum4 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum4.next, %loop ]
  %sum5 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum5.next, %loop ]
  %sum6 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum6.next, %loop ]
  %sum7 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum7.next, %loop ]
  %sum8 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum8.next, %loop ]
  %in = getelementptr i8, ptr %from, i32 %i
  %x.0 = load <16 x float>, ptr %in, align 4, !invariant.load !0
  %x.1 = fmul <16 x float> %x.0, %x.0
  %x.2 = fmul <16 x float> %x.1, %x.1
  %x.3 = fmul <16 x float> %x.2, %x.2
  %x.4 = fmul <16 x float> %x.3, %x.3
  %x.5 = fmul <16 x float> %x.4, %x.4
  %x.6 = fmul <16 x float> %x.5, %x.5
  %x.7 = fmul <16 x float> %x.6, %x.6
  %x.8 = fmul <16 x float> %x.7, %x.7
  %s0.0 = fadd <16 x float> %x.8, splat (float 1.0)
  %s0.1 = fadd <16 x float> %s0.0, splat (float 1.0)
  %s0.2 = fadd <16 x float> %s0.1, splat (float 1.0)
  %s0.3 = fadd <16 x float> %s0.2, splat (float 1.0)
  %s0.4 = fadd <16 x float> %s0.3, splat (float 1.0)
  %s0.5 = fadd <16 x float> %s0.4, splat (float 1.0)
  %s0.6 = fadd <16 x float> %s0.5, splat (float 1.0)
  %s0.7 = fadd <16 x float> %s0.6, splat (float 1.0)
  %sum0.next = fadd <16 x float> %sum0, %s0.7
  %s1.0 = fadd <16 x float> %x.8, splat (float 2.0)
  %s1.1 = fadd <16 x float> %s1.0, splat (float 2.0)
  %s1.2 = fadd <16 x float> %s1.1, splat (float 2.0)
  %s1.3 = fadd <16 x float> %s1.2, splat (float 2.0)
  %s1.4 = fadd <16 x float> %s1.3, splat (float 2.0)
  %s1.5 = fadd <16 x float> %s1.4, splat (float 2.0)
  %s1.6 = fadd <16 x float> %s1.5, splat (float 2.0)
  %s1.7 = fadd <16 x float> %s1.6, splat (float 2.0)
  %sum1.next = fadd <16 x float> %sum1, %s1.7
  %s2.0 = fadd <16 x float> %x.8, splat (float 3.0)
  %s2.1 = fadd <16 x float> %s2.0, splat (float 3.0)
  %s2.2 = fadd <16 x float> %s2.1, splat (float 3.0)
  %s2.3 = fadd <16 x float> %s2.2, splat (float 3.0)
  %s2.4 = fadd <16 x float> %s2.3, splat (float 3.0)
  %s2.5 = fadd <16 x float> %s2.4, splat (float 3.0)
  %s2.6 = fadd <16 x float> %s2.5, splat (float 3.0)
  %s2.7 = fadd <16 x float> %s2.6, splat (float 3.0)
  %sum2.next = fadd <16 x float> %sum2, %s2.7
  %s3.0 = fadd <16 x float> %x.8, splat (float 4.0)
  %s3.1 = fadd <16 x float> %s3.0, splat (float 4.0)
  %s3.2 = fadd <16 x float> %s3.1, splat (float 4.0)
  %s3.3 = fadd <16 x float> %s3.2, splat (float 4.0)
  %s3.4 = fadd <16 x float> %s3.3, splat (float 4.0)
  %s3.5 = fadd <16 x float> %s3.4, splat (float 4.0)
  %s3.6 = fadd <16 x float> %s3.5, splat (float 4.0)
  %s3.7 = fadd <16 x float> %s3.6, splat (float 4.0)
  %sum3.next = fadd <16 x float> %sum3, %s3.7
  %s4.0 = fadd <16 x float> %x.8, splat (float 5.0)
  %s4.1 = fadd <16 x float> %s4.0, splat (float 5.0)
  %s4.2 = fadd <16 x float> %s4.1, splat (float 5.0)
  %s4.3 = fadd <16 x float> %s4.2, splat (float 5.0)
  %s4.4 = fadd <16 x float> %s4.3, splat (float 5.0)
  %s4.5 = fadd <16 x float> %s4.4, splat (float 5.0)
  %s4.6 = fadd <16 x float> %s4.5, splat (float 5.0)
  %s4.7 = fadd <16 x float> %s4.6, splat (float 5.0)
  %sum4.next = fadd <16 x float> %sum4, %s4.7
  %s5.0 = fadd <16 x float> %x.8, splat (float 6.0)
  %s5.1 = fadd <16 x float> %s5.0, splat (float 6.0)
  %s5.2 = fadd <16 x float> %s5.1, splat (float 6.0)
  %s5.3 = fadd <16 x float> %s5.2, splat (float 6.0)
  %s5.4 = fadd <16 x float> %s5.3, splat (float 6.0)
  %s5.5 = fadd <16 x float> %s5.4, splat (float 6.0)
  %s5.6 = fadd <16 x float> %s5.5, splat (float 6.0)
  %s5.7 = fadd <16 x float> %s5.6, splat (float 6.0)
  %sum5.next = fadd <16 x float> %sum5, %s5.7
  %s6.0 = fadd <16 x float> %x.8, splat (float 7.0)
  %s6.1 = fadd <16 x float> %s6.0, splat (float 7.0)
  %s6.2 = fadd <16 x float> %s6.1, splat (float 7.0)
  %s6.3 = fadd <16 x float> %s6.2, splat (float 7.0)
  %s6.4 = fadd <16 x float> %s6.3, splat (float 7.0)
  %s6.5 = fadd <16 x float> %s6.4, splat (float 7.0)
  %s6.6 = fadd <16 x float> %s6.5, splat (float 7.0)
  %s6.7 = fadd <16 x float> %s6.6, splat (float 7.0)
  %sum6.next = fadd <16 x float> %sum6, %s6.7
  %s7.0 = fadd <16 x float> %x.8, splat (float 8.0)
  %s7.1 = fadd <16 x float> %s7.0, splat (float 8.0)
  %s7.2 = fadd <16 x float> %s7.1, splat (float 8.0)
  %s7.3 = fadd <16 x float> %s7.2, splat (float 8.0)
  %s7.4 = fadd <16 x float> %s7.3, splat (float 8.0)
  %s7.5 = fadd <16 x float> %s7.4, splat (float 8.0)
  %s7.6 = fadd <16 x float> %s7.5, splat (float 8.0)
  %s7.7 = fadd <16 x float> %s7.6, splat (float 8.0)
  %sum7.next = fadd <16 x float> %sum7, %s7.7
  %s8.0 = fadd <16 x float> %x.8, splat (float 9.0)
  %s8.1 = fadd <16 x float> %s8.0, splat (float 9.0)
  %s8.2 = fadd <16 x float> %s8.1, splat (float 9.0)
  %s8.3 = fadd <16 x float> %s8.2, splat (float 9.0)
  %s8.4 = fadd <16 x float> %s8.3, splat (float 9.0)
  %s8.5 = fadd <16 x float> %s8.4, splat (float 9.0)
  %s8.6 = fadd <16 x float> %s8.5, splat (float 9.0)
  %s8.7 = fadd <16 x float> %s8.6, splat (float 9.0)
  %sum8.next = fadd <16 x float> %sum8, %s8.7

  %next = add i32 %i, 64
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  %to0 = getelementptr i8, ptr %out, i64 0
  store <16 x float> %sum0.next, ptr %to0, align 4
  %to1 = getelementptr i8, ptr %out, i64 64
  store <16 x float> %sum1.next, ptr %to1, align 4
  %to2 = getelementptr i8, ptr %out, i64 128
  store <16 x float> %sum2.next, ptr %to2, align 4
  %to3 = getelementptr i8, ptr %out, i64 192
  store <16 x float> %sum3.next, ptr %to3, align 4
  %to4 = getelementptr i8, ptr %out, i64 256
  store <16 x float> %sum4.next, ptr %to4, align 4
  %to5 = getelementptr i8, ptr %out, i64 320
  store <16 x float> %sum5.next, ptr %to5, align 4
  %to6 = getelementptr i8, ptr %out, i64 384
  store <16 x float> %sum6.next, ptr %to6, align 4
  %to7 = getelementptr i8, ptr %out, i64 448
  store <16 x float> %sum7.next, ptr %to7, align 4
  %to8 = getelementptr i8, ptr %out, i64 512
  store <16 x float> %sum8.next, ptr %to8, align 4
  ret void
}

!0 = !{}
