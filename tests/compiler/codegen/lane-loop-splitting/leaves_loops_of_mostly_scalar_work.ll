; Both loops would do the scalar work. It may be as much as that of vectors, but not more: five vector additions with
; five scalar operations, and with six.
; RUN: kiln-opt --passes=lane-loop-splitting %s | FileCheck %s

; CHECK-LABEL: @five(
; CHECK: loop{{[0-9]*}}:
; CHECK-COUNT-5: phi <16 x float>
; CHECK: br i1 {{.*}}, label %loop{{[0-9]*}}, label %part
; CHECK: part:
; CHECK: loop{{[0-9]+}}:
; CHECK-COUNT-5: phi <16 x float>
; CHECK: br i1
; CHECK: shufflevector <16 x float> {{.*}}, <16 x float> {{.*}}, <32 x i32>
; CHECK: end:
; CHECK: ret void
define void @five(ptr noalias %in, ptr noalias %out, i32 %count, <32 x float> %outside) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %s0 = phi <32 x float> [ zeroinitializer, %entry ], [ %s0.next, %loop ]
  %s1 = phi <32 x float> [ zeroinitializer, %entry ], [ %s1.next, %loop ]
  %s2 = phi <32 x float> [ zeroinitializer, %entry ], [ %s2.next, %loop ]
  %s3 = phi <32 x float> [ zeroinitializer, %entry ], [ %s3.next, %loop ]
  %s4 = phi <32 x float> [ zeroinitializer, %entry ], [ %s4.next, %loop ]
  %address = getelementptr float, ptr %in, i32 %i
  %number = load float, ptr %address
  %first = insertelement <32 x float> poison, float %number, i64 0
  %x = shufflevector <32 x float> %first, <32 x float> poison, <32 x i32> zeroinitializer
  %u0 = mul i32 %i, %i
  %s0.next = fadd <32 x float> %s0, %x
  %s1.next = fadd <32 x float> %s1, %x
  %s2.next = fadd <32 x float> %s2, %x
  %s3.next = fadd <32 x float> %s3, %x
  %s4.next = fadd <32 x float> %s4, %x
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %count
  br i1 %more, label %loop, label %end
end:
  %out0 = getelementptr i8, ptr %out, i64 0
  store <32 x float> %s0.next, ptr %out0
  %out1 = getelementptr i8, ptr %out, i64 128
  store <32 x float> %s1.next, ptr %out1
  %out2 = getelementptr i8, ptr %out, i64 256
  store <32 x float> %s2.next, ptr %out2
  %out3 = getelementptr i8, ptr %out, i64 384
  store <32 x float> %s3.next, ptr %out3
  %out4 = getelementptr i8, ptr %out, i64 512
  store <32 x float> %s4.next, ptr %out4
  ret void
}

; CHECK-LABEL: @six(
; CHECK-NOT: <16 x
; CHECK: loop:
; CHECK: phi <32 x float>
; CHECK: ret void
define void @six(ptr noalias %in, ptr noalias %out, i32 %count, <32 x float> %outside) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %s0 = phi <32 x float> [ zeroinitializer, %entry ], [ %s0.next, %loop ]
  %s1 = phi <32 x float> [ zeroinitializer, %entry ], [ %s1.next, %loop ]
  %s2 = phi <32 x float> [ zeroinitializer, %entry ], [ %s2.next, %loop ]
  %s3 = phi <32 x float> [ zeroinitializer, %entry ], [ %s3.next, %loop ]
  %s4 = phi <32 x float> [ zeroinitializer, %entry ], [ %s4.next, %loop ]
  %address = getelementptr float, ptr %in, i32 %i
  %number = load float, ptr %address
  %first = insertelement <32 x float> poison, float %number, i64 0
  %x = shufflevector <32 x float> %first, <32 x float> poison, <32 x i32> zeroinitializer
  %u0 = mul i32 %i, %i
  %u1 = mul i32 %u0, %i
  %s0.next = fadd <32 x float> %s0, %x
  %s1.next = fadd <32 x float> %s1, %x
  %s2.next = fadd <32 x float> %s2, %x
  %s3.next = fadd <32 x float> %s3, %x
  %s4.next = fadd <32 x float> %s4, %x
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %count
  br i1 %more, label %loop, label %end
end:
  %out0 = getelementptr i8, ptr %out, i64 0
  store <32 x float> %s0.next, ptr %out0
  %out1 = getelementptr i8, ptr %out, i64 128
  store <32 x float> %s1.next, ptr %out1
  %out2 = getelementptr i8, ptr %out, i64 256
  store <32 x float> %s2.next, ptr %out2
  %out3 = getelementptr i8, ptr %out, i64 384
  store <32 x float> %s3.next, ptr %out3
  %out4 = getelementptr i8, ptr %out, i64 512
  store <32 x float> %s4.next, ptr %out4
  ret void
}
