; Loaded again is only what no thread changes, what each lane has of its own, and what takes few instructions: a uniform
; value is kept in little memory, and a gather would take longer than the value's place.
; RUN: kiln-opt --passes=reload-inputs %s | FileCheck %s

declare i32 @__kiln_lane()
declare i64 @__kiln_wait(i32, i64, i64) convergent

; CHECK-LABEL: define void @may_have_changed(
; CHECK: %a = load float
; CHECK-NEXT: call i64 @__kiln_wait
; CHECK-NEXT: store float %a
define void @may_have_changed(ptr %x, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %x, i32 %lane
  %a = load float, ptr %from
  %all = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  store float %a, ptr %y
  ret void
}

; CHECK-LABEL: define void @uniform(
; CHECK: %a = load float
; CHECK-NEXT: call i64 @__kiln_wait
; CHECK-NEXT: store float %a
define void @uniform(ptr %x, ptr %y) {
  %a = load float, ptr %x, !invariant.load !0
  %all = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  store float %a, ptr %y
  ret void
}

; CHECK-LABEL: define void @gather(
; CHECK: %a = load float
; CHECK-NEXT: call i64 @__kiln_wait
; CHECK-NEXT: store float %a
define void @gather(ptr %indices, ptr %x, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i32, ptr %indices, i32 %lane
  %k = load i32, ptr %at, !invariant.load !0
  %from = getelementptr float, ptr %x, i32 %k
  %a = load float, ptr %from, !invariant.load !0
  %all = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  store float %a, ptr %y
  ret void
}

; CHECK-LABEL: define void @costly_address(
; CHECK: %a = load float
; CHECK-NEXT: call i64 @__kiln_wait
; CHECK-NEXT: store float %a
define void @costly_address(ptr %x, ptr %y, i32 %n) {
  %lane = call i32 @__kiln_lane()
  %i = udiv i32 %lane, %n
  %from = getelementptr float, ptr %x, i32 %i
  %a = load float, ptr %from, !invariant.load !0
  %all = call i64 @__kiln_wait(i32 0, i64 0, i64 0) convergent
  store float %a, ptr %y
  ret void
}

!0 = !{}
