; A loop that loads from the invariant cache stays one loop, however few its sums: each iteration does the work for the
; first register of 8 lanes, then for the next, and loads that register's part of the vector.
; RUN: kiln-opt --passes=lane-loop-splitting %s | FileCheck %s

; CHECK-LABEL: @cached(
; CHECK: loop{{[0-9]*}}:
; CHECK-COUNT-4: phi <8 x float>
; CHECK: getelementptr i8, ptr %{{.*}}, i64 0
; CHECK: load <8 x float>
; CHECK: fadd <8 x float>
; CHECK: getelementptr i8, ptr %{{.*}}, i64 32
; CHECK: load <8 x float>
; CHECK: fadd <8 x float>
; CHECK: getelementptr i8, ptr %{{.*}}, i64 64
; CHECK: getelementptr i8, ptr %{{.*}}, i64 96
; CHECK: br i1 {{.*}}, label %loop{{[0-9]*}}, label %part
; CHECK-NOT: phi <8 x float>
; CHECK: shufflevector <16 x float> {{.*}}, <32 x i32>
; CHECK: ret void
define void @cached(ptr noalias %cache, ptr noalias %in, ptr noalias %out, i32 %count) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi <32 x float> [ zeroinitializer, %entry ], [ %sum.next, %loop ]
  %address = getelementptr float, ptr %cache, i32 %i
  %number = load float, ptr %address, !kiln.invariant_cache !0
  %first = insertelement <32 x float> poison, float %number, i64 0
  %x = shufflevector <32 x float> %first, <32 x float> poison, <32 x i32> zeroinitializer
  %weights = getelementptr [32 x float], ptr %in, i32 %i
  %weight = load <32 x float>, ptr %weights, align 4, !invariant.load !0
  %product = fmul <32 x float> %weight, %x
  %sum.next = fadd <32 x float> %sum, %product
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %count
  br i1 %more, label %loop, label %end
end:
  store <32 x float> %sum.next, ptr %out
  ret void
}

!0 = !{}
