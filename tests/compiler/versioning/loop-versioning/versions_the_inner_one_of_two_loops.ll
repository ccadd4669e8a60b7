; Both loops have enough checks. The inner one is versioned; the loop around it is not, or the inner one would be there
; four times.
; RUN: kiln-opt --passes=loop-versioning %s | FileCheck %s

declare void @one_by_one(i32)

; CHECK-LABEL: @nested(
; CHECK-NOT: row.slow
; CHECK: loop.slow:
; CHECK-NOT: row.slow
; CHECK: br i1 true, label %fast0
; CHECK: br i1 %check3, label %fast3
; CHECK: ret void
define void @nested(ptr %p0, i64 %limit0, ptr %p1, i64 %limit1, ptr %p2, i64 %limit2, i64 %start, i32 %count, i32 %rows) {
entry:
  br label %row
row:
  %r = phi i32 [ 0, %entry ], [ %r.next, %next5 ]
  br label %loop
loop:
  %i = phi i32 [ 0, %row ], [ %next, %next2 ]
  %index = phi i64 [ %start, %row ], [ %index.next, %next2 ]
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
  br i1 %more, label %loop, label %row.end
row.end:
  %check3 = icmp ult i64 %limit0, 1000
  br i1 %check3, label %fast3, label %slow3, !prof !0, !kiln.likely !99
fast3:
  store float 2.0, ptr %p0
  br label %next3
slow3:
  call void @one_by_one(i32 3)
  br label %next3
next3:
  %check4 = icmp ult i64 %limit1, 1000
  br i1 %check4, label %fast4, label %slow4, !prof !0, !kiln.likely !99
fast4:
  store float 2.0, ptr %p1
  br label %next4
slow4:
  call void @one_by_one(i32 4)
  br label %next4
next4:
  %check5 = icmp ult i64 %limit2, 1000
  br i1 %check5, label %fast5, label %slow5, !prof !0, !kiln.likely !99
fast5:
  store float 2.0, ptr %p2
  br label %next5
slow5:
  call void @one_by_one(i32 5)
  br label %next5
next5:
  %r.next = add i32 %r, 1
  %again = icmp ult i32 %r.next, %rows
  br i1 %again, label %row, label %end
end:
  ret void
}

!0 = !{!"branch_weights", i32 1000, i32 1}
!1 = !{!"branch_weights", i32 1, i32 1000}
!2 = !{!"branch_weights", i32 1000, i32 1}
!99 = !{}
