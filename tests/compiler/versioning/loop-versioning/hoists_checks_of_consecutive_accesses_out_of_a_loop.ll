; Each access checks whether its index is below a limit. The index grows by 1, so all its values are below the limit if
; the last one is: start < limit - growth, where the growth is at most the limit. If that holds for all three arrays, a
; loop without checks runs; otherwise the original one.
; RUN: kiln-opt --passes=loop-versioning %s | FileCheck %s

declare void @one_by_one(i32)

; CHECK-LABEL: @accesses(
; CHECK: %[[GROWTH:.*]] = zext i32 %{{.*}} to i64
; CHECK: %[[LIMIT:.*]] = call i64 @llvm.usub.sat.i64(i64 %limit0, i64 %[[GROWTH]])
; CHECK: icmp ult i64 %start, %[[LIMIT]]
; CHECK: %[[LIMIT1:.*]] = call i64 @llvm.usub.sat.i64(i64 %limit1, i64 %{{.*}})
; CHECK: icmp ult i64 %start, %[[LIMIT1]]
; CHECK: %[[LIMIT2:.*]] = call i64 @llvm.usub.sat.i64(i64 %limit2, i64 %{{.*}})
; CHECK: icmp ult i64 %start, %[[LIMIT2]]
; CHECK: br i1 %{{.*}}, label %[[FAST:.*]], label %[[SLOW:.*]], !prof
; The original, in its clone:
; CHECK: loop.slow:
; CHECK: br i1 %check0.slow, label %fast0.slow, label %slow0.slow
; CHECK: br i1 %check2.slow,
; The loop without checks:
; CHECK: loop:
; CHECK: br i1 true, label %fast0, label %slow0
; CHECK: br i1 true, label %fast1, label %slow1
; CHECK: br i1 true, label %fast2, label %slow2
; CHECK: ret void
define void @accesses(ptr %p0, i64 %limit0, ptr %p1, i64 %limit1, ptr %p2, i64 %limit2, i64 %start, i32 %count) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %next2 ]
  %index = phi i64 [ %start, %entry ], [ %index.next, %next2 ]
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
  %check1 = icmp ult i64 %index, %limit1
  br i1 %check1, label %fast1, label %slow1, !prof !0, !kiln.likely !99
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
