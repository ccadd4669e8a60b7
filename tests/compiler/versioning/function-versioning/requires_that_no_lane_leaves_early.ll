; `if (x >= 100 || y >= 50) return;` before everything else: the fast version runs where all lanes go on, tests that first,
; and has no mask.
; RUN: kiln-opt --passes=function-versioning %s | FileCheck %s

declare void @one_by_one(i32)

; CHECK-LABEL: define internal i1 @leaves_early.whole(
; CHECK: %[[RIGHT:.*]] = icmp sgt <32 x i32> %{{.*}}, <i32 99,
; CHECK: select <32 x i1> zeroinitializer, <32 x i1>
; CHECK: %[[BITS:.*]] = bitcast <32 x i1> %[[RIGHT]] to i32
; CHECK: icmp eq i32 %[[BITS]], 0
; CHECK: icmp eq i1 %{{.*}}, false
; CHECK: call i64 @llvm.usub.sat.i64(i64 %limit, i64 12)
; CHECK: br i1 %{{.*}}, label %[[REST:.*]], label %other, !prof
; CHECK: br i1 true, label %fast0
define internal void @leaves_early(ptr %launch, i64 %first, i32 %half, i32 %row, i32 %x, i32 %lanes) {
entry:
  %p = load ptr, ptr %launch, !invariant.load !3
  %limit.at = getelementptr i8, ptr %launch, i64 8
  %limit = load i64, ptr %limit.at, !invariant.load !3
  %threads.first = insertelement <32 x i32> poison, i32 %lanes, i64 0
  %threads = shufflevector <32 x i32> %threads.first, <32 x i32> poison, <32 x i32> zeroinitializer
  %active = icmp ult <32 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>, %threads
  %x.first = insertelement <32 x i32> poison, i32 %x, i64 0
  %x.all = shufflevector <32 x i32> %x.first, <32 x i32> poison, <32 x i32> zeroinitializer
  %columns = or disjoint <32 x i32> %x.all, <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25, i32 26, i32 27, i32 28, i32 29, i32 30, i32 31>
  %right = icmp sgt <32 x i32> %columns, <i32 99, i32 99, i32 99, i32 99, i32 99, i32 99, i32 99, i32 99, i32 99, i32 99, i32 99, i32 99, i32 99, i32 99, i32 99, i32 99, i32 99, i32 99, i32 99, i32 99, i32 99, i32 99, i32 99, i32 99, i32 99, i32 99, i32 99, i32 99, i32 99, i32 99, i32 99, i32 99>
  %below = icmp sgt i32 %row, 49
  %below.first = insertelement <32 x i1> poison, i1 %below, i64 0
  %below.all = shufflevector <32 x i1> %below.first, <32 x i1> poison, <32 x i32> zeroinitializer
  %outside = select <32 x i1> %right, <32 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true>, <32 x i1> %below.all
  %stay = xor <32 x i1> %outside, <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true>
  %mask = select <32 x i1> %active, <32 x i1> %stay, <32 x i1> zeroinitializer
  %bits = bitcast <32 x i1> %mask to i32
  %any = icmp ne i32 %bits, 0
  br i1 %any, label %inside, label %end
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
