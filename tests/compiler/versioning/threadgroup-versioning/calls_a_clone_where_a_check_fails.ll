; The checks of a whole function, in its loops and outside of them, become one condition at its start. Where it fails,
; the function calls a clone of the original; otherwise it has no checks.
; RUN: kiln-opt --passes=threadgroup-versioning %s | FileCheck %s

declare void @one_by_one(i32)

; CHECK-LABEL: define void @group(
; CHECK-DAG: call i64 @llvm.usub.sat.i64(i64 %limit0,
; CHECK-DAG: icmp ult i64 %start, %other
; CHECK: br i1 %{{.*}}, label %{{.*}}, label %apart{{$}}
; CHECK: loop:
; CHECK: br i1 true, label %fast0, label %slow0
; CHECK: br i1 true, label %fast7, label %slow7
; CHECK: apart:
; CHECK-NEXT: call void @group.slow(ptr %p0, i64 %limit0, i64 %start, i32 %count, i64 %other)
; CHECK-NEXT: ret void
; CHECK-LABEL: define internal void @group.slow(
; CHECK: br i1 %check0, label %fast0
; CHECK: br i1 %check7, label %fast7
define void @group(ptr %p0, i64 %limit0, i64 %start, i32 %count, i64 %other) {
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
  %index.next = add i64 %index, 1
  %next = add nuw i32 %i, 1
  %more = icmp ult i32 %next, %count
  br i1 %more, label %loop, label %end
end:
  %check7 = icmp ult i64 %start, %other
  br i1 %check7, label %fast7, label %slow7, !prof !0, !kiln.likely !99
fast7:
  store float 2.0, ptr %p0
  br label %last
slow7:
  call void @one_by_one(i32 7)
  br label %last
last:
  ret void
}

!0 = !{!"branch_weights", i32 1000, i32 1}
!1 = !{!"branch_weights", i32 1, i32 1000}
!2 = !{!"branch_weights", i32 1000, i32 1}
!99 = !{}
