; Two registers of AVX-512's are four of AVX2's: four simdgroups with eight registers of sums, or two. Six simdgroups are
; no multiple of four.
; RUN: kiln-opt --passes=interleaved-simdgroups --cpu=x86-64-v4 %s | FileCheck %s
; RUN: kiln-opt --passes=interleaved-simdgroups --cpu=x86-64-v3 %s | FileCheck %s --check-prefix=AVX2

; CHECK-LABEL: @eight(
; CHECK-COUNT-4: fadd
; CHECK-NOT: fadd
; CHECK-LABEL: @six(
; CHECK-COUNT-2: fadd
; CHECK-NOT: fadd
; AVX2-LABEL: @eight(
; AVX2-COUNT-2: fadd
; AVX2-NOT: fadd
; AVX2-LABEL: @six(
; AVX2-COUNT-2: fadd
; AVX2-NOT: fadd
define void @eight(ptr noalias %tile, ptr noalias %frames) {
entry:
  br label %simdgroup
simdgroup:
  %number = phi i32 [ 0, %entry ], [ %next, %done ]
  %sum.at = getelementptr <32 x float>, ptr %frames, i32 %number
  %first = load <32 x float>, ptr %sum.at
  br label %inner
inner:
  %k = phi i32 [ 0, %simdgroup ], [ %k.next, %inner ]
  %sum = phi <32 x float> [ %first, %simdgroup ], [ %sum.next, %inner ]
  %row.at = getelementptr <32 x float>, ptr %tile, i32 %k
  %row = load <32 x float>, ptr %row.at
  %sum.next = fadd <32 x float> %sum, %row
  %k.next = add i32 %k, 1
  %k.more = icmp ult i32 %k.next, 100
  br i1 %k.more, label %inner, label %done
done:
  store <32 x float> %sum.next, ptr %sum.at
  %next = add nuw nsw i32 %number, 1
  %more = icmp ult i32 %next, 8
  br i1 %more, label %simdgroup, label %exit, !kiln.simdgroups !0
exit:
  ret void
}

define void @six(ptr noalias %tile, ptr noalias %frames) {
entry:
  br label %simdgroup
simdgroup:
  %number = phi i32 [ 0, %entry ], [ %next, %done ]
  %sum.at = getelementptr <32 x float>, ptr %frames, i32 %number
  %first = load <32 x float>, ptr %sum.at
  br label %inner
inner:
  %k = phi i32 [ 0, %simdgroup ], [ %k.next, %inner ]
  %sum = phi <32 x float> [ %first, %simdgroup ], [ %sum.next, %inner ]
  %row.at = getelementptr <32 x float>, ptr %tile, i32 %k
  %row = load <32 x float>, ptr %row.at
  %sum.next = fadd <32 x float> %sum, %row
  %k.next = add i32 %k, 1
  %k.more = icmp ult i32 %k.next, 100
  br i1 %k.more, label %inner, label %done
done:
  store <32 x float> %sum.next, ptr %sum.at
  %next = add nuw nsw i32 %number, 1
  %more = icmp ult i32 %next, 6
  br i1 %more, label %simdgroup, label %exit, !kiln.simdgroups !0
exit:
  ret void
}

!0 = !{}
