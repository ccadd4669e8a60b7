; Three accesses whose numbers are extended from 32 bits, at distances known in 32 bits. Below a limit that is not beyond
; 2^31 elements no such number wraps, and so one check is enough. Without that bound on the limit each has its own.
; RUN: kiln-opt --passes=function-versioning %s | FileCheck %s

declare void @one_by_one(i32)
declare i64 @llvm.umin.i64(i64, i64)

; CHECK-LABEL: define internal i1 @bounded.whole(
; CHECK: %[[LIMIT:.*]] = call i64 @llvm.usub.sat.i64(i64 %limit{{.*}}, i64 12)
; CHECK: icmp ult i64 %n2{{.*}}, %[[LIMIT]]
; CHECK-NOT: icmp ult i64
; CHECK: br i1 %{{.*}}, label %{{.*}}, label %other, !prof

; CHECK-LABEL: define internal i1 @unbounded.whole(
; CHECK-COUNT-3: icmp ult i64
; CHECK: br i1 %{{.*}}, label %{{.*}}, label %other, !prof
define internal void @bounded(ptr %launch, i32 %first, i32 %half, i32 %row, i32 %x, i32 %lanes) {
entry:
  %p = load ptr, ptr %launch, !invariant.load !3
  %limit.at = getelementptr i8, ptr %launch, i64 8
  %loaded = load i64, ptr %limit.at, !invariant.load !3
  %limit = call i64 @llvm.umin.i64(i64 %loaded, i64 8589934592)
  %n0.narrow = add i32 %first, 2
  %n0.wide = sext i32 %n0.narrow to i64
  %n0 = shl i64 %n0.wide, 2
  %check0 = icmp ult i64 %n0, %limit
  br i1 %check0, label %fast0, label %slow0, !prof !0, !kiln.likely !99
fast0:
  store i8 1, ptr %p
  br label %next0
slow0:
  call void @one_by_one(i32 0)
  br label %next0
next0:
  %n1.narrow = add i32 %first, 3
  %n1.wide = sext i32 %n1.narrow to i64
  %n1 = shl i64 %n1.wide, 2
  %check1 = icmp ult i64 %n1, %limit
  br i1 %check1, label %fast1, label %slow1, !prof !0, !kiln.likely !99
fast1:
  store i8 1, ptr %p
  br label %next1
slow1:
  call void @one_by_one(i32 1)
  br label %next1
next1:
  %n2.wide = sext i32 %first to i64
  %n2 = shl i64 %n2.wide, 2
  %check2 = icmp ult i64 %n2, %limit
  br i1 %check2, label %fast2, label %slow2, !prof !0, !kiln.likely !99
fast2:
  store i8 1, ptr %p
  br label %next2
slow2:
  call void @one_by_one(i32 2)
  br label %next2
next2:
  ret void
}

define internal void @unbounded(ptr %launch, i32 %first, i32 %half, i32 %row, i32 %x, i32 %lanes) {
entry:
  %p = load ptr, ptr %launch, !invariant.load !3
  %limit.at = getelementptr i8, ptr %launch, i64 8
  %loaded = load i64, ptr %limit.at, !invariant.load !3
  %limit = call i64 @llvm.umin.i64(i64 %loaded, i64 8589934593)
  %n0.narrow = add i32 %first, 2
  %n0.wide = sext i32 %n0.narrow to i64
  %n0 = shl i64 %n0.wide, 2
  %check0 = icmp ult i64 %n0, %limit
  br i1 %check0, label %fast0, label %slow0, !prof !0, !kiln.likely !99
fast0:
  store i8 1, ptr %p
  br label %next0
slow0:
  call void @one_by_one(i32 0)
  br label %next0
next0:
  %n1.narrow = add i32 %first, 3
  %n1.wide = sext i32 %n1.narrow to i64
  %n1 = shl i64 %n1.wide, 2
  %check1 = icmp ult i64 %n1, %limit
  br i1 %check1, label %fast1, label %slow1, !prof !0, !kiln.likely !99
fast1:
  store i8 1, ptr %p
  br label %next1
slow1:
  call void @one_by_one(i32 1)
  br label %next1
next1:
  %n2.wide = sext i32 %first to i64
  %n2 = shl i64 %n2.wide, 2
  %check2 = icmp ult i64 %n2, %limit
  br i1 %check2, label %fast2, label %slow2, !prof !0, !kiln.likely !99
fast2:
  store i8 1, ptr %p
  br label %next2
slow2:
  call void @one_by_one(i32 2)
  br label %next2
next2:
  ret void
}

!0 = !{!"branch_weights", i32 1000, i32 1}
!3 = !{}
!99 = !{}
