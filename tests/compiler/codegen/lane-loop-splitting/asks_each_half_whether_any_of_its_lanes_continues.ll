; A loop that goes on while any lane continues: in each half, while any of its lanes does. The masks are 16 bits then.
; RUN: kiln-opt --passes=lane-loop-splitting %s | FileCheck %s

; CHECK-LABEL: @any(
; CHECK: loop{{[0-9]*}}:
; CHECK: phi <16 x i1>
; CHECK: %[[BITS:.*]] = bitcast <16 x i1> %{{.*}} to i16
; CHECK: %[[WORD:.*]] = zext i16 %[[BITS]] to i32
; CHECK: icmp ne i32 %[[WORD]], 0
; CHECK: part:
; CHECK: phi <16 x i1>
; CHECK: bitcast <16 x i1> %{{.*}} to i16
; CHECK: end:
define void @any(ptr noalias %in, ptr noalias %out, i32 %count, <32 x float> %outside, <32 x i1> %active) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %go = phi <32 x i1> [ %active, %entry ], [ %still, %loop ]
  %s0 = phi <32 x float> [ zeroinitializer, %entry ], [ %s0.next, %loop ]
  %s1 = phi <32 x float> [ zeroinitializer, %entry ], [ %s1.next, %loop ]
  %s2 = phi <32 x float> [ zeroinitializer, %entry ], [ %s2.next, %loop ]
  %s3 = phi <32 x float> [ zeroinitializer, %entry ], [ %s3.next, %loop ]
  %s4 = phi <32 x float> [ zeroinitializer, %entry ], [ %s4.next, %loop ]
  %address = getelementptr float, ptr %in, i32 %i
  %number = load float, ptr %address
  %first = insertelement <32 x float> poison, float %number, i64 0
  %x = shufflevector <32 x float> %first, <32 x float> poison, <32 x i32> zeroinitializer
  %still = fcmp olt <32 x float> %s0, %outside
  %sum0 = fadd <32 x float> %s0, %x
  %s0.next = select <32 x i1> %go, <32 x float> %sum0, <32 x float> %s0
  %sum1 = fadd <32 x float> %s1, %x
  %s1.next = select <32 x i1> %go, <32 x float> %sum1, <32 x float> %s1
  %sum2 = fadd <32 x float> %s2, %x
  %s2.next = select <32 x i1> %go, <32 x float> %sum2, <32 x float> %s2
  %sum3 = fadd <32 x float> %s3, %x
  %s3.next = select <32 x i1> %go, <32 x float> %sum3, <32 x float> %s3
  %sum4 = fadd <32 x float> %s4, %x
  %s4.next = select <32 x i1> %go, <32 x float> %sum4, <32 x float> %s4
  %next = add i32 %i, 1
  %bits = bitcast <32 x i1> %still to i32
  %more = icmp ne i32 %bits, 0
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

; CHECK-LABEL: @any_reduced(
; CHECK: call i1 @llvm.vector.reduce.or.v16i1(<16 x i1>
; CHECK: part:
; CHECK: call i1 @llvm.vector.reduce.or.v16i1(<16 x i1>
; CHECK: end:
define void @any_reduced(ptr noalias %in, ptr noalias %out, i32 %count, <32 x float> %outside, <32 x i1> %active) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %go = phi <32 x i1> [ %active, %entry ], [ %still, %loop ]
  %s0 = phi <32 x float> [ zeroinitializer, %entry ], [ %s0.next, %loop ]
  %s1 = phi <32 x float> [ zeroinitializer, %entry ], [ %s1.next, %loop ]
  %s2 = phi <32 x float> [ zeroinitializer, %entry ], [ %s2.next, %loop ]
  %s3 = phi <32 x float> [ zeroinitializer, %entry ], [ %s3.next, %loop ]
  %s4 = phi <32 x float> [ zeroinitializer, %entry ], [ %s4.next, %loop ]
  %address = getelementptr float, ptr %in, i32 %i
  %number = load float, ptr %address
  %first = insertelement <32 x float> poison, float %number, i64 0
  %x = shufflevector <32 x float> %first, <32 x float> poison, <32 x i32> zeroinitializer
  %still = fcmp olt <32 x float> %s0, %outside
  %sum0 = fadd <32 x float> %s0, %x
  %s0.next = select <32 x i1> %go, <32 x float> %sum0, <32 x float> %s0
  %sum1 = fadd <32 x float> %s1, %x
  %s1.next = select <32 x i1> %go, <32 x float> %sum1, <32 x float> %s1
  %sum2 = fadd <32 x float> %s2, %x
  %s2.next = select <32 x i1> %go, <32 x float> %sum2, <32 x float> %s2
  %sum3 = fadd <32 x float> %s3, %x
  %s3.next = select <32 x i1> %go, <32 x float> %sum3, <32 x float> %s3
  %sum4 = fadd <32 x float> %s4, %x
  %s4.next = select <32 x i1> %go, <32 x float> %sum4, <32 x float> %s4
  %next = add i32 %i, 1
  %bit = call i1 @llvm.vector.reduce.or.v32i1(<32 x i1> %still)
  %more = icmp ne i1 %bit, false
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

; Whether all lanes continue is another question: the halves would not have the same answer.
; CHECK-LABEL: @all(
; CHECK-NOT: <16 x
; CHECK: loop:
; CHECK: phi <32 x float>
; CHECK: ret void
define void @all(ptr noalias %in, ptr noalias %out, i32 %count, <32 x float> %outside, <32 x i1> %active) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %go = phi <32 x i1> [ %active, %entry ], [ %still, %loop ]
  %s0 = phi <32 x float> [ zeroinitializer, %entry ], [ %s0.next, %loop ]
  %s1 = phi <32 x float> [ zeroinitializer, %entry ], [ %s1.next, %loop ]
  %s2 = phi <32 x float> [ zeroinitializer, %entry ], [ %s2.next, %loop ]
  %s3 = phi <32 x float> [ zeroinitializer, %entry ], [ %s3.next, %loop ]
  %s4 = phi <32 x float> [ zeroinitializer, %entry ], [ %s4.next, %loop ]
  %address = getelementptr float, ptr %in, i32 %i
  %number = load float, ptr %address
  %first = insertelement <32 x float> poison, float %number, i64 0
  %x = shufflevector <32 x float> %first, <32 x float> poison, <32 x i32> zeroinitializer
  %still = fcmp olt <32 x float> %s0, %outside
  %sum0 = fadd <32 x float> %s0, %x
  %s0.next = select <32 x i1> %go, <32 x float> %sum0, <32 x float> %s0
  %sum1 = fadd <32 x float> %s1, %x
  %s1.next = select <32 x i1> %go, <32 x float> %sum1, <32 x float> %s1
  %sum2 = fadd <32 x float> %s2, %x
  %s2.next = select <32 x i1> %go, <32 x float> %sum2, <32 x float> %s2
  %sum3 = fadd <32 x float> %s3, %x
  %s3.next = select <32 x i1> %go, <32 x float> %sum3, <32 x float> %s3
  %sum4 = fadd <32 x float> %s4, %x
  %s4.next = select <32 x i1> %go, <32 x float> %sum4, <32 x float> %s4
  %next = add i32 %i, 1
  %bits = bitcast <32 x i1> %still to i32
  %more = icmp eq i32 %bits, -1
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

declare i1 @llvm.vector.reduce.or.v32i1(<32 x i1>)
