; A shuffle moves numbers between lanes of both halves, so the halves cannot run one after the other.
; RUN: kiln-opt --passes=lane-loop-splitting %s | FileCheck %s

; CHECK-LABEL: @rotates(
; CHECK-NOT: <16 x
; CHECK: loop:
; CHECK: phi <32 x float>
; CHECK: ret void
define void @rotates(ptr noalias %in, ptr noalias %out, i32 %count, <32 x float> %outside) {
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
  %moved = shufflevector <32 x float> %s0, <32 x float> poison, <32 x i32> <i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31, i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %s0.next = fadd <32 x float> %s0, %moved
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

; A sum over the lanes is no test whether any lane continues.
; CHECK-LABEL: @adds_lanes(
; CHECK-NOT: <16 x
; CHECK: loop:
; CHECK: phi <32 x float>
; CHECK: ret void
define void @adds_lanes(ptr noalias %in, ptr noalias %out, i32 %count, <32 x float> %outside) {
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
  %total = call float @llvm.vector.reduce.fadd.v32f32(float 0.0, <32 x float> %s0)
  %s0.next = fadd <32 x float> %s0, %x
  %s1.next = fadd <32 x float> %s1, %x
  %s2.next = fadd <32 x float> %s2, %x
  %s3.next = fadd <32 x float> %s3, %x
  %s4.next = fadd <32 x float> %s4, %x
  %next = add i32 %i, 1
  %more = fcmp olt float %total, 10.0
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

declare float @llvm.vector.reduce.fadd.v32f32(float, <32 x float>)
