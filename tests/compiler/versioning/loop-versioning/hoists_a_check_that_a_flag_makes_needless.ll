; A check of an index unless a flag from outside the loop holds, as of an access under a condition. Before the loop the
; index must be in bounds unless the flag holds. If neither part is known before the loop, the check stays.
; RUN: kiln-opt --passes=loop-versioning %s | FileCheck %s

declare void @one_by_one(i32)

; CHECK-LABEL: @unless(
; CHECK: %[[LIMIT:.*]] = call i64 @llvm.usub.sat.i64(i64 %limit1, i64 %{{.*}})
; CHECK: %[[START:.*]] = select i1 %flag, i64 0, i64 %start
; CHECK: icmp ult i64 %[[START]], %[[LIMIT]]
; CHECK: loop.slow:
; CHECK: loop:
; CHECK: br i1 true, label %fast1, label %slow1
define void @unless(ptr %p0, i64 %limit0, ptr %p1, i64 %limit1, ptr %p2, i64 %limit2, i64 %start, i32 %count, i1 %flag) {
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
  %inside = icmp ult i64 %index, %limit1
  %check1 = select i1 %flag, i1 true, i1 %inside
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

; CHECK-LABEL: @two_changing(
; CHECK-NOT: .slow
; CHECK: br i1 %check1, label %fast1, label %slow1
; CHECK-NOT: .slow
; CHECK: ret void
define void @two_changing(ptr %p0, i64 %limit0, ptr %p1, i64 %limit1, ptr %p2, i64 %limit2, i64 %start, i32 %count) {
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
  %odd = trunc i64 %index to i1
  %inside = icmp ult i64 %index, %limit1
  %check1 = select i1 %odd, i1 true, i1 %inside
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
