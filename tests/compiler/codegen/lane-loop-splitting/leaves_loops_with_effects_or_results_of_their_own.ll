; What a second run of the loop would repeat: a store, a volatile load, and a call. And a result that is not a vector of
; the lanes would come from one of the two loops.
; RUN: kiln-opt --passes=lane-loop-splitting %s | FileCheck %s

; CHECK-LABEL: @stores(
; CHECK-NOT: <16 x
; CHECK: loop:
; CHECK: phi <32 x float>
; CHECK: ret void
define void @stores(ptr noalias %in, ptr noalias %out, i32 %count, <32 x float> %outside) {
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
  store i32 %i, ptr %out
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

; CHECK-LABEL: @loads_volatile(
; CHECK-NOT: <16 x
; CHECK: loop:
; CHECK: phi <32 x float>
; CHECK: ret void
define void @loads_volatile(ptr noalias %in, ptr noalias %out, i32 %count, <32 x float> %outside) {
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
  %v = load volatile float, ptr %out
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

; CHECK-LABEL: @calls(
; CHECK-NOT: <16 x
; CHECK: loop:
; CHECK: phi <32 x float>
; CHECK: ret void
define void @calls(ptr noalias %in, ptr noalias %out, i32 %count, <32 x float> %outside) {
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
  %v = call i32 @read(i32 %i)
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

; CHECK-LABEL: @counts(
; CHECK-NOT: <16 x
; CHECK: loop:
; CHECK: phi <32 x float>
; CHECK: ret void
define void @counts(ptr noalias %in, ptr noalias %out, i32 %count, <32 x float> %outside) {
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
  store i32 %next, ptr %in
  ret void
}

declare i32 @read(i32) memory(none) nounwind willreturn
