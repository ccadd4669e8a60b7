; An index of 32 bits that starts anywhere may wrap, so its 64 bits need not grow steadily. In a loop that unrolling
; removes, "it does not wrap" becomes a part of the condition. In a loop that stays, the check stays, too. The clone,
; which rarely runs, is not unrolled.
; RUN: kiln-opt --passes=threadgroup-versioning %s | FileCheck %s

declare void @one_by_one(i32)

; CHECK-LABEL: define void @unrolled(
; CHECK: label %apart{{$}}
; CHECK: br i1 true, label %fast0
; CHECK: !llvm.loop ![[FULL:[0-9]+]]
; CHECK-LABEL: define void @stays(
; CHECK-NOT: apart
; CHECK: br i1 %check0, label %fast0
; CHECK-LABEL: define internal void @unrolled.slow(
; CHECK: br i1 %check0, label %fast0
; CHECK: !llvm.loop ![[NEVER:[0-9]+]]
; CHECK-DAG: ![[FULL]] = distinct !{{[{]}}![[FULL]], ![[HOW:[0-9]+]]}
; CHECK-DAG: ![[HOW]] = !{{[{]}}!"llvm.loop.unroll.full"}
; CHECK-DAG: ![[NEVER]] = distinct !{{[{]}}![[NEVER]], ![[NOT:[0-9]+]]}
; CHECK-DAG: ![[NOT]] = !{{[{]}}!"llvm.loop.unroll.disable"}
define void @unrolled(ptr %p0, i64 %limit0, i32 %x) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %next0 ]
  %sum = add i32 %x, %i
  %index = zext i32 %sum to i64
  %check0 = icmp ult i64 %index, %limit0
  br i1 %check0, label %fast0, label %slow0, !prof !0, !kiln.likely !99
fast0:
  %a0 = getelementptr float, ptr %p0, i64 %index
  store float 1.0, ptr %a0
  br label %next0
slow0:
  call void @one_by_one(i32 0)
  br label %next0
next0:
  %next = add nuw nsw i32 %i, 1
  %more = icmp ult i32 %next, 4
  br i1 %more, label %loop, label %end, !llvm.loop !4
end:
  ret void
}

define void @stays(ptr %p0, i64 %limit0, i32 %x) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %next0 ]
  %sum = add i32 %x, %i
  %index = zext i32 %sum to i64
  %check0 = icmp ult i64 %index, %limit0
  br i1 %check0, label %fast0, label %slow0, !prof !0, !kiln.likely !99
fast0:
  %a0 = getelementptr float, ptr %p0, i64 %index
  store float 1.0, ptr %a0
  br label %next0
slow0:
  call void @one_by_one(i32 0)
  br label %next0
next0:
  %next = add nuw nsw i32 %i, 1
  %more = icmp ult i32 %next, 4
  br i1 %more, label %loop, label %end
end:
  ret void
}

!0 = !{!"branch_weights", i32 1000, i32 1}
!1 = !{!"branch_weights", i32 1, i32 1000}
!2 = !{!"branch_weights", i32 1000, i32 1}
!4 = distinct !{!4, !5}
!5 = !{!"llvm.loop.unroll.full"}
!99 = !{}
