; Four sums of a loop that leave most registers to the computation of what they add: the chains of the four go on at a
; time. Where registers are few (AVX2) the order stays.
; RUN: kiln-opt --passes=pressure-scheduler --cpu=x86-64-v4 %s | FileCheck %s
; RUN: kiln-opt --passes=pressure-scheduler %s | FileCheck %s --check-prefix=FEW

; CHECK-LABEL: @four(
; CHECK: %s0.0 = fadd
; CHECK: %s1.0 = fadd
; CHECK: %s2.0 = fadd
; CHECK: %s3.0 = fadd
; CHECK: %sum0.next = fadd
; CHECK: br i1
; FEW: %s0.0 = fadd
; FEW-NOT: %s1.
; FEW: %sum0.next = fadd
; FEW: %s1.0 = fadd
; FEW-NOT: %s2.
; FEW: %sum1.next = fadd
define void @four(ptr noalias %from, ptr noalias %out, i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum0 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum0.next, %loop ]
  %sum1 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum1.next, %loop ]
  %sum2 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum2.next, %loop ]
  %sum3 = phi <16 x float> [ zeroinitializer, %entry ], [ %sum3.next, %loop ]
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
  ret void
}

!0 = !{}
