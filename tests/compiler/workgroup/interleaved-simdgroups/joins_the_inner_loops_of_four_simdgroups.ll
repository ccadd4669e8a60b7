; Each of eight simdgroups continues one register of sums in an inner loop. Four take turns in it, with one counter. Eight
; sums would be in flight, but four simdgroups are the most that are put together.
; RUN: kiln-opt --passes=interleaved-simdgroups --cpu=x86-64-v4 %s | FileCheck %s

; CHECK-LABEL: @sums(
; CHECK: {{^}}simdgroup:
; CHECK: [[NUMBER:%.+]] = phi i32 [ 0, %entry ], [ [[NEXT:%.+]], %done ]
; CHECK-COUNT-4: load <16 x float>, ptr %sum.at
; CHECK: [[NEXT]] = add nuw nsw i32 [[NUMBER]], 4
; CHECK: {{^}}inner:
; CHECK-COUNT-1: phi i32
; CHECK-COUNT-4: phi <16 x float>
; CHECK-NOT: phi
; CHECK: {{^}}done:
; CHECK-COUNT-4: store <16 x float>
; CHECK: br i1 %{{.+}}, label %simdgroup, label %exit
define void @sums(ptr noalias %tile, ptr noalias %frames) {
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

!0 = !{}
