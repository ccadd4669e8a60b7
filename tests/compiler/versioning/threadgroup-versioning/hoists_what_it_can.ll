; One check is enough, and a check that cannot be hoisted stays beside it.
; RUN: kiln-opt --passes=threadgroup-versioning %s | FileCheck %s

declare void @one_by_one(i32)

; CHECK-LABEL: define void @some(
; CHECK: label %apart{{$}}
; CHECK: br i1 true, label %fast0
; CHECK: br i1 %check1, label %fast1
; CHECK: call void @some.slow(
define void @some(ptr %p0, i64 %limit0, ptr %p1, i64 %limit1, i64 %start, i32 %count) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %next1 ]
  %index = phi i64 [ %start, %entry ], [ %index.next, %next1 ]
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
  %loaded = load i64, ptr %p0
  %check1 = icmp ult i64 %loaded, %limit1
  br i1 %check1, label %fast1, label %slow1, !prof !0, !kiln.likely !99
fast1:
  %a1 = getelementptr float, ptr %p1, i64 %index
  store float 1.0, ptr %a1
  br label %next1
slow1:
  call void @one_by_one(i32 1)
  br label %next1
next1:
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
