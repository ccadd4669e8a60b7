; Stores to members of one element, with the loads and arithmetic of the later ones between them, come together at the
; last of them, in their order.
; RUN: kiln-opt --passes=cluster-stores %s | FileCheck %s

@tile = internal global [64 x float] zeroinitializer, section "kiln.threadgroup"
@__kiln_sink = external global [64 x i8], align 16

; CHECK-LABEL: define void @members(
; CHECK: %second = fmul
; CHECK-NEXT: store float %first, ptr %to.0
; CHECK-NEXT: store float %second, ptr %to.1
; CHECK-NEXT: ret void
define void @members(ptr %arguments, i64 %i, float %a, float %b) {
  %y = load ptr, ptr %arguments, !invariant.load !0
  %to.0 = getelementptr [2 x float], ptr %y, i64 %i
  %to.1 = getelementptr i8, ptr %to.0, i64 4
  %first = fadd float %a, %b
  store float %first, ptr %to.0
  %second = fmul float %a, %b
  store float %second, ptr %to.1
  ret void
}

; An input cannot be changed by the store, nor can threadgroup memory by a store to an argument.
; CHECK-LABEL: define void @loads_between(
; CHECK: %from.tile = load float
; CHECK-NEXT: store float %a, ptr %to.0
; CHECK-NEXT: store float %input, ptr %to.1
; CHECK-NEXT: store float %from.tile, ptr %to.2
; CHECK-NEXT: ret void
define void @loads_between(ptr %arguments, i64 %i, float %a) {
  %y = load ptr, ptr %arguments, !invariant.load !0
  %next = getelementptr i8, ptr %arguments, i64 24
  %x = load ptr, ptr %next, !invariant.load !0
  %to.0 = getelementptr [3 x float], ptr %y, i64 %i
  %to.1 = getelementptr i8, ptr %to.0, i64 4
  %to.2 = getelementptr i8, ptr %to.0, i64 8
  store float %a, ptr %to.0
  %input = load float, ptr %x, !invariant.load !0
  store float %input, ptr %to.1
  %from.tile = load float, ptr @tile
  store float %from.tile, ptr %to.2
  ret void
}

; The guards' selects between an address and a sink do not hide the neighbors.
; CHECK-LABEL: define void @guarded(
; CHECK: %second = fmul
; CHECK-NEXT: store float %a, ptr %safe.0
; CHECK-NEXT: store float %second, ptr %safe.1
; CHECK-NEXT: ret void
define void @guarded(ptr %arguments, i64 %i, i1 %allowed.0, i1 %allowed.1, float %a, float %b) {
  %y = load ptr, ptr %arguments, !invariant.load !0
  %to.0 = getelementptr [2 x float], ptr %y, i64 %i
  %to.1 = getelementptr i8, ptr %to.0, i64 4
  %safe.0 = select i1 %allowed.0, ptr %to.0, ptr @__kiln_sink
  %safe.1 = select i1 %allowed.1, ptr %to.1, ptr @__kiln_sink
  store float %a, ptr %safe.0
  %second = fmul float %a, %b
  store float %second, ptr %safe.1
  ret void
}

!0 = !{}
