; An array that no thread writes is the same during a launch, so that its loads are invariant. An output's are not.
; RUN: kiln-opt --passes=describe-accesses --parameters=in:4,out:4 %s | FileCheck %s

; CHECK-LABEL: define void @body(
; CHECK: %a = load float, ptr %from, align 4, !invariant.load
; CHECK: %b = load float, ptr %to, align 4{{$}}
; CHECK: %c = load float, ptr %any, align 4{{$}}
; CHECK: %d = load volatile float, ptr %from, align 4{{$}}
define void @body(ptr %x, i64 %x.first, i64 %x.end, ptr %y, i64 %y.first, i64 %y.end, ptr %thread, i64 %i, i1 %side) {
  %from = getelementptr float, ptr %x, i64 %i
  %to = getelementptr float, ptr %y, i64 %i
  %a = load float, ptr %from
  %b = load float, ptr %to
  ; One of the two.
  %any = select i1 %side, ptr %from, ptr %to
  %c = load float, ptr %any
  %d = load volatile float, ptr %from
  %ab = fadd float %a, %b
  store float %ab, ptr %to
  ret void
}
