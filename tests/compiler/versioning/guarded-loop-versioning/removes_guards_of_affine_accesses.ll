; Where the last iteration's access is inside of its array, a version of the loop without bounds guards runs, and else the
; original, which is not unrolled.
; RUN: kiln-opt --passes=guarded-loop-versioning %s | FileCheck %s

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer, align 64
@__kiln_sink = external global [64 x i8], align 16

; CHECK-LABEL: @sum_of_a_row(
; CHECK: %[[LIMIT:.*]] = call i64 @llvm.usub.sat.i64(i64 %end,
; CHECK: icmp ult i64 %{{.*}}, %[[LIMIT]]
; CHECK: br i1 %{{.*}}, label %entry.split, label %entry.split.slow
; CHECK: loop.slow:
; CHECK: select i1 %{{.*}}, ptr %{{.*}}, ptr @__kiln_zeros.64
; CHECK: br i1 %{{.*}}, label %loop.slow, label %end.of.loop, !llvm.loop ![[ONCE:[0-9]+]]
; CHECK: loop:
; CHECK-NOT: select
; CHECK: load float, ptr %address
; CHECK: br i1 %more, label %loop, label %end.of.loop{{$}}
define float @sum_of_a_row(ptr %x, i64 %end.bytes, i32 range(i32 0, 1024) %row, i32 %count) {
entry:
  %end = call i64 @llvm.usub.sat.i64(i64 %end.bytes, i64 3)
  %first = mul nuw nsw i32 %row, 4096
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %total, %loop ]
  %i = add nuw nsw i32 %first, %k
  %wide = zext nneg i32 %i to i64
  %address = getelementptr float, ptr %x, i64 %wide
  %offset = shl nuw nsw i64 %wide, 2
  %inside = icmp ult i64 %offset, %end
  %guarded = select i1 %inside, ptr %address, ptr @__kiln_zeros.64
  %value = load float, ptr %guarded
  %total = fadd float %sum, %value
  %next = add nuw nsw i32 %k, 1
  %more = icmp ult i32 %next, 1024
  br i1 %more, label %loop, label %end.of.loop
end.of.loop:
  ret float %total
}

; An index of 32 bits that is compared as it is, and a store.
; CHECK-LABEL: @fill(
; CHECK: zext i32 %first to i64
; CHECK: br i1 %{{.*}}, label %entry.split, label %entry.split.slow
; CHECK: loop.slow:
; CHECK: select i1 %{{.*}}, ptr %{{.*}}, ptr @__kiln_sink
; CHECK: loop:
; CHECK-NOT: select
; CHECK: store float 0.000000e+00, ptr %address
define void @fill(ptr %x, i32 %first) {
entry:
  br label %loop
loop:
  %i = phi i32 [ %first, %entry ], [ %i.next, %loop ]
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %wide = zext i32 %i to i64
  %address = getelementptr float, ptr %x, i64 %wide
  %inside = icmp ult i32 %i, 5000
  %guarded = select i1 %inside, ptr %address, ptr @__kiln_sink
  store float 0.0, ptr %guarded
  %i.next = add i32 %i, 3
  %next = add nuw nsw i32 %k, 1
  %more = icmp ult i32 %next, 20
  br i1 %more, label %loop, label %end
end:
  ret void
}

; CHECK: ![[ONCE]] = distinct !{![[ONCE]], ![[DISABLED:[0-9]+]]}
; CHECK: ![[DISABLED]] = !{!"llvm.loop.unroll.disable"}

declare i64 @llvm.usub.sat.i64(i64, i64)
