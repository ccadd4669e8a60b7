; What comes after the first check is no early exit: a body may end with `if (lane == 0) y[i] = sum;`.
; RUN: kiln-opt --passes=function-versioning %s | FileCheck %s

declare void @one_by_one(i32)

; CHECK-LABEL: define internal i1 @last_condition.whole(
; CHECK-NOT: icmp eq i1
; CHECK: br i1 %{{.*}}, label %[[REST:.*]], label %other, !prof
; CHECK: br i1 %few, label %last, label %end
define internal void @last_condition(ptr %launch, i64 %first, i32 %half, i32 %row, i32 %x, i32 %lanes) {
entry:
  %p = load ptr, ptr %launch, !invariant.load !3
  %limit.at = getelementptr i8, ptr %launch, i64 8
  %limit = load i64, ptr %limit.at, !invariant.load !3
  %few = icmp ult i32 %x, 100
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
  br i1 %few, label %last, label %end
last:
  store i8 2, ptr %p
  br label %end
end:
  ret void
}

; A condition that is constant needs no test.
; CHECK-LABEL: define internal i1 @constant.whole(
; CHECK-NOT: icmp eq i1
; CHECK: br i1 %{{.*}}, label %[[REST:.*]], label %other, !prof
define internal void @constant(ptr %launch, i64 %first, i32 %half, i32 %row, i32 %x, i32 %lanes) {
entry:
  %p = load ptr, ptr %launch, !invariant.load !3
  %limit.at = getelementptr i8, ptr %launch, i64 8
  %limit = load i64, ptr %limit.at, !invariant.load !3
  br i1 true, label %inside, label %end
inside:
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
  br label %end
end:
  ret void
}

!0 = !{!"branch_weights", i32 1000, i32 1}
!1 = !{!"branch_weights", i32 1, i32 1000}
!2 = !{!"branch_weights", i32 1000, i32 1}
!3 = !{}
!99 = !{}
