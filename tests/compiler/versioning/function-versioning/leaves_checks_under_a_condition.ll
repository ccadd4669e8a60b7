; A check that does not always execute may fail where its condition is false: often the condition is what keeps the
; access in bounds. The fast version would then hardly ever run, so such checks do not count.
; RUN: kiln-opt --passes=function-versioning %s | FileCheck %s
; RUN: kiln-opt --passes=function-versioning --remarks %s 2>&1 | FileCheck %s --check-prefix=REMARK

; REMARK: remark: function-versioning: this check stays: it is made under a condition
; REMARK-NEXT: remark: function-versioning: not this kernel: 0 of its checks can be made first, and fewer than 3 are not worth a second function
; REMARK-NOT: remark:

declare void @one_by_one(i32)

; CHECK-NOT: .whole
define internal void @under_a_condition(ptr %launch, i64 %first, i32 %half, i32 %row, i32 %x, i32 %lanes) {
entry:
  %p = load ptr, ptr %launch, !invariant.load !3
  %limit.at = getelementptr i8, ptr %launch, i64 8
  %limit = load i64, ptr %limit.at, !invariant.load !3
  %condition = icmp ult i64 %first, 100
  br i1 %condition, label %inside, label %outside
outside:
  store i8 3, ptr %p
  br label %end
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
