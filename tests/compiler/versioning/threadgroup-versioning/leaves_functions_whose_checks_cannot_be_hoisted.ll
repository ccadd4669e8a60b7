; Nothing can be said at the start about an index that is loaded later, or one that falls. Branches that are not marked
; as likely are no checks. Such functions get no clone.
; RUN: kiln-opt --passes=threadgroup-versioning %s | FileCheck %s

declare void @one_by_one(i32)

; CHECK-NOT: .slow
; CHECK-NOT: i1 true
define void @loaded(ptr %p0, i64 %limit0, i64 %start, i32 %count) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %next0 ]
  %index = phi i64 [ %start, %entry ], [ %index.next, %next0 ]
  %loaded = load i64, ptr %p0
  %check0 = icmp ult i64 %loaded, %limit0
  br i1 %check0, label %fast0, label %slow0, !prof !0, !kiln.likely !99
fast0:
  %a0 = getelementptr float, ptr %p0, i64 %index
  store float 1.0, ptr %a0
  br label %next0
slow0:
  call void @one_by_one(i32 0)
  br label %next0
next0:
  %index.next = add i64 %index, 1
  %next = add nuw i32 %i, 1
  %more = icmp ult i32 %next, %count
  br i1 %more, label %loop, label %end
end:
  ret void
}

define void @falls(ptr %p0, i64 %limit0, i64 %start, i32 %count) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %next0 ]
  %index = phi i64 [ %start, %entry ], [ %index.next, %next0 ]
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
  %index.next = add i64 %index, -1
  %next = add nuw i32 %i, 1
  %more = icmp ult i32 %next, %count
  br i1 %more, label %loop, label %end
end:
  ret void
}

define void @not_marked(ptr %p0, i64 %limit0, i64 %start, i32 %count) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %next0 ]
  %index = phi i64 [ %start, %entry ], [ %index.next, %next0 ]
  %check0 = icmp ult i64 %index, %limit0
  br i1 %check0, label %fast0, label %slow0
fast0:
  %a0 = getelementptr float, ptr %p0, i64 %index
  store float 1.0, ptr %a0
  br label %next0
slow0:
  call void @one_by_one(i32 0)
  br label %next0
next0:
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
