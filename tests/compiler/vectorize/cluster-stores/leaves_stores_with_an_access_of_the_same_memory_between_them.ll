; What is between two neighbors may read what the first has stored, or be a point at which others read it.
; RUN: kiln-opt --passes=cluster-stores %s | FileCheck %s

declare void @meet() convergent

; CHECK-LABEL: define void @reads_the_output(
; CHECK: store float %a, ptr %to.0
; CHECK-NEXT: %read = load float, ptr %from
; CHECK-NEXT: store float %read, ptr %to.1
define void @reads_the_output(ptr %arguments, ptr %from, float %a) {
  %to.0 = load ptr, ptr %arguments, !invariant.load !0
  %to.1 = getelementptr i8, ptr %to.0, i64 4
  store float %a, ptr %to.0
  %read = load float, ptr %from
  store float %read, ptr %to.1
  ret void
}

; CHECK-LABEL: define void @waits(
; CHECK: store float %a, ptr %to.0
; CHECK-NEXT: call void @meet()
; CHECK-NEXT: store float %b, ptr %to.1
define void @waits(ptr %arguments, float %a, float %b) {
  %to.0 = load ptr, ptr %arguments, !invariant.load !0
  %to.1 = getelementptr i8, ptr %to.0, i64 4
  store float %a, ptr %to.0
  call void @meet() convergent
  store float %b, ptr %to.1
  ret void
}

; CHECK-LABEL: define void @volatile_store(
; CHECK: store volatile float %a, ptr %to.0
; CHECK-NEXT: %second = fmul
; CHECK-NEXT: store volatile float %second, ptr %to.1
define void @volatile_store(ptr %arguments, float %a, float %b) {
  %to.0 = load ptr, ptr %arguments, !invariant.load !0
  %to.1 = getelementptr i8, ptr %to.0, i64 4
  store volatile float %a, ptr %to.0
  %second = fmul float %a, %b
  store volatile float %second, ptr %to.1
  ret void
}

; A store to another array may be to the same memory as the first.
; CHECK-LABEL: define void @another_store(
; CHECK: store float %a, ptr %to.0
; CHECK-NEXT: %second = fmul
; CHECK-NEXT: store float %b, ptr %unknown
; CHECK-NEXT: store float %second, ptr %to.1
define void @another_store(ptr %arguments, ptr %unknown, float %a, float %b) {
  %to.0 = load ptr, ptr %arguments, !invariant.load !0
  %to.1 = getelementptr i8, ptr %to.0, i64 4
  store float %a, ptr %to.0
  %second = fmul float %a, %b
  store float %b, ptr %unknown
  store float %second, ptr %to.1
  ret void
}

!0 = !{}
