; Neighbors are up to 64 bytes apart, a constant distance in either direction. They have one type and do not overlap,
; since stores that are emitted together have no order.
; RUN: kiln-opt --passes=cluster-stores %s | FileCheck %s

; CHECK-LABEL: define void @at_64_bytes(
; CHECK: %second = fmul
; CHECK-NEXT: store float %a
; CHECK-NEXT: store float %second
define void @at_64_bytes(ptr %y, float %a, float %b) {
  store float %a, ptr %y
  %other = getelementptr i8, ptr %y, i64 64
  %second = fmul float %a, %b
  store float %second, ptr %other
  ret void
}

; CHECK-LABEL: define void @at_65_bytes(
; CHECK: store float %a
; CHECK: %second = fmul
; CHECK: store float %second
define void @at_65_bytes(ptr %y, float %a, float %b) {
  store float %a, ptr %y
  %other = getelementptr i8, ptr %y, i64 65
  %second = fmul float %a, %b
  store float %second, ptr %other
  ret void
}

; CHECK-LABEL: define void @backwards(
; CHECK: %second = fmul
; CHECK-NEXT: store float %a
; CHECK-NEXT: store float %second
define void @backwards(ptr %y, float %a, float %b) {
  store float %a, ptr %y
  %other = getelementptr i8, ptr %y, i64 -4
  %second = fmul float %a, %b
  store float %second, ptr %other
  ret void
}

; CHECK-LABEL: define void @overlapping(
; CHECK: store float %a
; CHECK: %second = fmul
; CHECK: store float %second
define void @overlapping(ptr %y, float %a, float %b) {
  store float %a, ptr %y
  %other = getelementptr i8, ptr %y, i64 3
  %second = fmul float %a, %b
  store float %second, ptr %other
  ret void
}

; CHECK-LABEL: define void @unknown_distance(
; CHECK: store float %a
; CHECK: %second = fmul
; CHECK: store float %second
define void @unknown_distance(ptr %y, i64 %n, float %a, float %b) {
  store float %a, ptr %y
  %other = getelementptr float, ptr %y, i64 %n
  %second = fmul float %a, %b
  store float %second, ptr %other
  ret void
}

; CHECK-LABEL: define void @another_type(
; CHECK: store float %a
; CHECK: %second = fadd
; CHECK: store double %second
define void @another_type(ptr %y, float %a, double %b) {
  store float %a, ptr %y
  %other = getelementptr i8, ptr %y, i64 8
  %second = fadd double %b, %b
  store double %second, ptr %other
  ret void
}
