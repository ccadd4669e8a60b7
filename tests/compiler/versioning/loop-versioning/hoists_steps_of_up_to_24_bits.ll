; The growth is step times count. With steps below 2^24 and counts below 2^34 it cannot wrap; a larger step could.
; RUN: kiln-opt --passes=loop-versioning %s | FileCheck %s

declare void @one_by_one(i32)

; CHECK-LABEL: @largest_step(
; CHECK: mul {{.*}}i64 %{{.*}}, 16777215
; CHECK: call i64 @llvm.usub.sat.i64
; CHECK: br i1 true, label %fast0
define void @largest_step(ptr %p0, i64 %limit0, ptr %p1, i64 %limit1, ptr %p2, i64 %limit2, i64 %start, i32 %count) {
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
  %index.next = add i64 %index, 16777215
  %next = add nuw i32 %i, 1
  %more = icmp ult i32 %next, %count
  br i1 %more, label %loop, label %end
end:
  ret void
}

; CHECK-LABEL: @too_large_a_step(
; CHECK-NOT: .slow
; CHECK-NOT: i1 true
; CHECK: ret void
define void @too_large_a_step(ptr %p0, i64 %limit0, ptr %p1, i64 %limit1, ptr %p2, i64 %limit2, i64 %start, i32 %count) {
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
  %index.next = add i64 %index, 16777216
  %next = add nuw i32 %i, 1
  %more = icmp ult i32 %next, %count
  br i1 %more, label %loop, label %end
end:
  ret void
}

; With a counter of 64 bits nothing limits the count.
; CHECK-LABEL: @counts_in_64_bits(
; CHECK-NOT: .slow
; CHECK-NOT: i1 true
; CHECK: ret void
define void @counts_in_64_bits(ptr %p0, i64 %limit0, ptr %p1, i64 %limit1, ptr %p2, i64 %limit2, i64 %start, i32 %count, i64 %wide) {
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
  %more = icmp ult i64 %index.next, %wide
  br i1 %more, label %loop, label %end
end:
  ret void
}

!0 = !{!"branch_weights", i32 1000, i32 1}
!1 = !{!"branch_weights", i32 1, i32 1000}
!2 = !{!"branch_weights", i32 1000, i32 1}
!99 = !{}
