; The arguments' description does not change while a launch runs. So limits that are read later are read at the start,
; where the checks of them are. A load of something else, or one that may change, stays.
; RUN: kiln-opt --passes=threadgroup-versioning %s | FileCheck %s

declare void @one_by_one(i32)

; CHECK-LABEL: define void @limits(
; CHECK: entry:
; CHECK: %arguments = load ptr, ptr %{{.*}}, !invariant.load
; CHECK: %limit = load i64, ptr %{{.*}}, !invariant.load
; CHECK-NOT: store
; CHECK: br i1 %{{.*}}, label %{{.*}}, label %apart{{$}}
; CHECK: store float 0.0
; CHECK: br i1 true, label %fast0
; CHECK: br i1 %check1, label %fast1
define void @limits(ptr %launch, ptr %p0, ptr %p1, i64 %index) {
entry:
  store float 0.0, ptr %p0
  br label %after
after:
  %arguments = load ptr, ptr %launch, !invariant.load !3
  %limit.at = getelementptr i8, ptr %arguments, i64 16
  %limit = load i64, ptr %limit.at, !invariant.load !3
  %other = load i64, ptr %p1
  %check0 = icmp ult i64 %index, %limit
  br i1 %check0, label %fast0, label %slow0, !prof !0, !kiln.likely !99
fast0:
  %a0 = getelementptr float, ptr %p0, i64 %index
  store float 1.0, ptr %a0
  br label %next0
slow0:
  call void @one_by_one(i32 0)
  br label %next0
next0:
  %check1 = icmp ult i64 %index, %other
  br i1 %check1, label %fast1, label %slow1, !prof !0, !kiln.likely !99
fast1:
  %a1 = getelementptr float, ptr %p1, i64 %index
  store float 1.0, ptr %a1
  br label %next1
slow1:
  call void @one_by_one(i32 1)
  br label %next1
next1:
  ret void
}

!0 = !{!"branch_weights", i32 1000, i32 1}
!1 = !{!"branch_weights", i32 1, i32 1000}
!2 = !{!"branch_weights", i32 1000, i32 1}
!3 = !{}
!99 = !{}
