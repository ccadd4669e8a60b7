; Three accesses to one array, the lowest 8 bytes before and the highest 4 bytes behind the first: if the lowest index
; is below the limit by more than 12, all are in bounds. The fast version tests that once, for all 32 lanes, and returns
; false before it has done anything where it does not hold. The original stays.
; RUN: kiln-opt --passes=function-versioning %s | FileCheck %s

declare void @one_by_one(i32)

; CHECK-LABEL: define internal void @stencil(
; CHECK: br i1 %check0, label %fast0, label %slow0, !prof
; CHECK: br i1 %check1,
; CHECK: br i1 %check2,
; CHECK: ret void

; CHECK-LABEL: define internal i1 @stencil.whole(ptr %0, i64 %1, i32 %2, i32 %3, i32 %4, i32 %5)
; CHECK: %[[LOWEST:n2.*]] = add i64 %1, -8
; CHECK: %[[LIMIT:.*]] = call i64 @llvm.usub.sat.i64(i64 %limit{{.*}}, i64 12)
; CHECK: %[[ALL:.*]] = icmp ult i64 %[[LOWEST]], %[[LIMIT]]
; CHECK-NOT: icmp ult i64
; CHECK: br i1 %{{.*}}, label %[[REST:.*]], label %other, !prof
; CHECK: br i1 true, label %fast0
; CHECK: br i1 true, label %fast1
; CHECK: br i1 true, label %fast2
; CHECK: ret i1 true
; CHECK: other:
; CHECK-NEXT: ret i1 false
define internal void @stencil(ptr %launch, i64 %first, i32 %half, i32 %row, i32 %x, i32 %lanes) {
entry:
  %p = load ptr, ptr %launch, !invariant.load !3
  %limit.at = getelementptr i8, ptr %launch, i64 8
  %limit = load i64, ptr %limit.at, !invariant.load !3
  %n0 = add i64 %first, 0
  %check0 = icmp ult i64 %n0, %limit
  br i1 %check0, label %fast0, label %slow0, !prof !0, !kiln.likely !99
fast0:
  %a0 = getelementptr i8, ptr %p, i64 0
  store i8 1, ptr %a0
  br label %next0
slow0:
  call void @one_by_one(i32 0)
  br label %next0
next0:
  %n1 = add i64 %first, 4
  %check1 = icmp ult i64 %n1, %limit
  br i1 %check1, label %fast1, label %slow1, !prof !0, !kiln.likely !99
fast1:
  %a1 = getelementptr i8, ptr %p, i64 1
  store i8 1, ptr %a1
  br label %next1
slow1:
  call void @one_by_one(i32 1)
  br label %next1
next1:
  %n2 = add i64 %first, -8
  %check2 = icmp ult i64 %n2, %limit
  br i1 %check2, label %fast2, label %slow2, !prof !0, !kiln.likely !99
fast2:
  %a2 = getelementptr i8, ptr %p, i64 2
  store i8 1, ptr %a2
  br label %next2
slow2:
  call void @one_by_one(i32 2)
  br label %next2
next2:
  ret void
}

!0 = !{!"branch_weights", i32 1000, i32 1}
!1 = !{!"branch_weights", i32 1, i32 1000}
!2 = !{!"branch_weights", i32 1000, i32 1}
!3 = !{}
!99 = !{}
