; Simdgroups that have other numbers of iterations, whose inner loop stores, or that use scratch, which they have in
; common, run one after the other. So do iterations of loops that are not over simdgroups.
; RUN: kiln-opt --passes=interleaved-simdgroups --cpu=x86-64-v4 %s | FileCheck %s
; RUN: kiln-opt --passes=interleaved-simdgroups --cpu=x86-64-v4 --remarks %s 2>&1 | FileCheck %s --check-prefix=REMARK

; REMARK: remark: interleaved-simdgroups: not this loop: simdgroups may have other numbers of iterations
; REMARK-NOT: remark:

; CHECK-LABEL: @other_trip_counts(
; CHECK-COUNT-1: fadd
; CHECK-NOT: fadd
; CHECK: ret void
define void @other_trip_counts(ptr noalias %tile, ptr noalias %frames) {
entry:
  br label %simdgroup
simdgroup:
  %number = phi i32 [ 0, %entry ], [ %next, %done ]
  %sum.at = getelementptr <16 x float>, ptr %frames, i32 %number
  %first = load <16 x float>, ptr %sum.at
  br label %inner
inner:
  %k = phi i32 [ %number, %simdgroup ], [ %k.next, %inner ]
  %sum = phi <16 x float> [ %first, %simdgroup ], [ %sum.next, %inner ]
  %row.at = getelementptr <16 x float>, ptr %tile, i32 %k
  %row = load <16 x float>, ptr %row.at
  %sum.next = fadd <16 x float> %sum, %row
  %k.next = add i32 %k, 1
  %k.more = icmp ult i32 %k.next, 100
  br i1 %k.more, label %inner, label %done
done:
  store <16 x float> %sum.next, ptr %sum.at
  %next = add nuw nsw i32 %number, 1
  %more = icmp ult i32 %next, 8
  br i1 %more, label %simdgroup, label %exit, !kiln.simdgroups !0
exit:
  ret void
}

; CHECK-LABEL: @until_data_say_so(
; CHECK-COUNT-1: fadd
; CHECK-NOT: fadd
; CHECK: ret void
define void @until_data_say_so(ptr noalias %tile, ptr noalias %frames) {
entry:
  br label %simdgroup
simdgroup:
  %number = phi i32 [ 0, %entry ], [ %next, %done ]
  %sum.at = getelementptr <16 x float>, ptr %frames, i32 %number
  %first = load <16 x float>, ptr %sum.at
  br label %inner
inner:
  %k = phi i32 [ 0, %simdgroup ], [ %k.next, %inner ]
  %sum = phi <16 x float> [ %first, %simdgroup ], [ %sum.next, %inner ]
  %row.at = getelementptr <16 x float>, ptr %tile, i32 %k
  %row = load <16 x float>, ptr %row.at
  %sum.next = fadd <16 x float> %sum, %row
  %k.next = add i32 %k, 1
  %one = extractelement <16 x float> %sum.next, i64 0
  %k.more = fcmp olt float %one, 100.0
  br i1 %k.more, label %inner, label %done
done:
  store <16 x float> %sum.next, ptr %sum.at
  %next = add nuw nsw i32 %number, 1
  %more = icmp ult i32 %next, 8
  br i1 %more, label %simdgroup, label %exit, !kiln.simdgroups !0
exit:
  ret void
}

; CHECK-LABEL: @stores(
; CHECK-COUNT-1: fadd
; CHECK-NOT: fadd
; CHECK: ret void
define void @stores(ptr noalias %tile, ptr noalias %frames) {
entry:
  br label %simdgroup
simdgroup:
  %number = phi i32 [ 0, %entry ], [ %next, %done ]
  %sum.at = getelementptr <16 x float>, ptr %frames, i32 %number
  %first = load <16 x float>, ptr %sum.at
  br label %inner
inner:
  %k = phi i32 [ 0, %simdgroup ], [ %k.next, %inner ]
  %sum = phi <16 x float> [ %first, %simdgroup ], [ %sum.next, %inner ]
  %row.at = getelementptr <16 x float>, ptr %tile, i32 %k
  %row = load <16 x float>, ptr %row.at
  %sum.next = fadd <16 x float> %sum, %row
  store <16 x float> %sum.next, ptr %row.at
  %k.next = add i32 %k, 1
  %k.more = icmp ult i32 %k.next, 100
  br i1 %k.more, label %inner, label %done
done:
  store <16 x float> %sum.next, ptr %sum.at
  %next = add nuw nsw i32 %number, 1
  %more = icmp ult i32 %next, 8
  br i1 %more, label %simdgroup, label %exit, !kiln.simdgroups !0
exit:
  ret void
}

; CHECK-LABEL: @scratch(
; CHECK-COUNT-1: fadd
; CHECK-NOT: fadd
; CHECK: ret void
define void @scratch(ptr noalias %tile, ptr noalias %frames) {
entry:
  %scratch = alloca <16 x float>, !kiln.scratch !0
  br label %simdgroup
simdgroup:
  %number = phi i32 [ 0, %entry ], [ %next, %done ]
  %sum.at = getelementptr <16 x float>, ptr %frames, i32 %number
  %first = load <16 x float>, ptr %sum.at
  store <16 x float> %first, ptr %scratch
  br label %inner
inner:
  %k = phi i32 [ 0, %simdgroup ], [ %k.next, %inner ]
  %sum = phi <16 x float> [ zeroinitializer, %simdgroup ], [ %sum.next, %inner ]
  %row = load <16 x float>, ptr %scratch
  %sum.next = fadd <16 x float> %sum, %row
  %k.next = add i32 %k, 1
  %k.more = icmp ult i32 %k.next, 100
  br i1 %k.more, label %inner, label %done
done:
  store <16 x float> %sum.next, ptr %sum.at
  %next = add nuw nsw i32 %number, 1
  %more = icmp ult i32 %next, 8
  br i1 %more, label %simdgroup, label %exit, !kiln.simdgroups !0
exit:
  ret void
}

; CHECK-LABEL: @not_over_simdgroups(
; CHECK-COUNT-1: fadd
; CHECK-NOT: fadd
; CHECK: ret void
define void @not_over_simdgroups(ptr noalias %tile, ptr noalias %frames) {
entry:
  br label %outer
outer:
  %number = phi i32 [ 0, %entry ], [ %next, %done ]
  %sum.at = getelementptr <16 x float>, ptr %frames, i32 %number
  %first = load <16 x float>, ptr %sum.at
  br label %inner
inner:
  %k = phi i32 [ 0, %outer ], [ %k.next, %inner ]
  %sum = phi <16 x float> [ %first, %outer ], [ %sum.next, %inner ]
  %row.at = getelementptr <16 x float>, ptr %tile, i32 %k
  %row = load <16 x float>, ptr %row.at
  %sum.next = fadd <16 x float> %sum, %row
  %k.next = add i32 %k, 1
  %k.more = icmp ult i32 %k.next, 100
  br i1 %k.more, label %inner, label %done
done:
  store <16 x float> %sum.next, ptr %sum.at
  %next = add nuw nsw i32 %number, 1
  %more = icmp ult i32 %next, 8
  br i1 %more, label %outer, label %exit
exit:
  ret void
}

!0 = !{}
