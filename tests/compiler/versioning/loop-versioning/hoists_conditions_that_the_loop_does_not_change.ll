; A check of a flag from outside the loop, of several conditions at once, and one whose unlikely side is the first: each
; becomes a part of the condition. A part that the loop would not have evaluated may be poison, so it is frozen.
; RUN: kiln-opt --passes=loop-versioning %s | FileCheck %s

declare void @one_by_one(i32)

; CHECK-LABEL: @flags(
; CHECK-DAG: freeze i1 %flag
; CHECK-DAG: %[[NOT:.*]] = xor i1 %bad, true
; CHECK-DAG: freeze i1 %[[NOT]]
; CHECK-DAG: call i64 @llvm.usub.sat.i64(i64 %limit0,
; CHECK-DAG: call i64 @llvm.usub.sat.i64(i64 %limit2,
; CHECK: br i1 %{{.*}}, label %[[FAST:.*]], label %[[SLOW:.*]], !prof
; CHECK: loop:
; CHECK: br i1 true, label %fast0, label %slow0
; CHECK: br i1 false, label %fast1, label %slow1
; CHECK: br i1 true, label %fast2, label %slow2
define void @flags(ptr %p0, i64 %limit0, ptr %p1, i64 %limit1, ptr %p2, i64 %limit2, i64 %start, i32 %count, i1 %flag, i1 %bad) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %next2 ]
  %index = phi i64 [ %start, %entry ], [ %index.next, %next2 ]
  %inside = icmp ult i64 %index, %limit0
  %check0 = select i1 %inside, i1 %flag, i1 false
  br i1 %check0, label %fast0, label %slow0, !prof !0, !kiln.likely !99
fast0:
  %a0 = getelementptr float, ptr %p0, i64 %index
  store float 1.0, ptr %a0
  br label %next0
slow0:
  call void @one_by_one(i32 0)
  br label %next0
next0:
  %check1 = or i1 %bad, false
  br i1 %check1, label %fast1, label %slow1, !prof !1, !kiln.likely !99
fast1:
  %a1 = getelementptr float, ptr %p1, i64 %index
  store float 1.0, ptr %a1
  br label %next1
slow1:
  call void @one_by_one(i32 1)
  br label %next1
next1:
  %check2 = icmp ult i64 %index, %limit2
  br i1 %check2, label %fast2, label %slow2, !prof !0, !kiln.likely !99
fast2:
  %a2 = getelementptr float, ptr %p2, i64 %index
  store float 1.0, ptr %a2
  br label %next2
slow2:
  call void @one_by_one(i32 2)
  br label %next2
next2:
  %index.next = add i64 %index, 1
  %next = add nuw i32 %i, 1
  %more = icmp ult i32 %next, %count
  br i1 %more, label %loop, label %end
end:
  ret void
}

!0 = !{!"branch_weights", i32 1000, i32 1}
!1 = !{!"branch_weights", i32 1, i32 1000}
!2 = !{!"branch_weights", i32 1000, i32 1}
!99 = !{}
