; Where threads execute a collective between the branch and the join, others may read by then what has been stored.
; A call that is not convergent and touches no memory does not matter.
; RUN: kiln-opt --passes=sink-stores %s | FileCheck %s

declare i32 @__kiln_lane()
declare void @meet() convergent memory(none)
declare float @compute(float) memory(none)

; CHECK-LABEL: define void @collective(
; CHECK: then:
; CHECK: store float %a
; CHECK: else:
; CHECK-NEXT: store float %b
; CHECK: join:
; CHECK-NEXT: ret void
define void @collective(ptr %arguments, float %a, float %b) {
entry:
  %y = load ptr, ptr %arguments, !invariant.load !0
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %then, label %else
then:
  call void @meet() convergent
  store float %a, ptr %y
  br label %join
else:
  store float %b, ptr %y
  br label %join
join:
  ret void
}

; CHECK-LABEL: define void @fence(
; CHECK: then:
; CHECK: store float %a
; CHECK: else:
; CHECK-NEXT: store float %b
; CHECK: join:
; CHECK-NEXT: ret void
define void @fence(ptr %arguments, float %a, float %b) {
entry:
  %y = load ptr, ptr %arguments, !invariant.load !0
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %then, label %else
then:
  fence seq_cst
  store float %a, ptr %y
  br label %join
else:
  store float %b, ptr %y
  br label %join
join:
  ret void
}

; CHECK-LABEL: define void @call_of_arithmetic(
; CHECK: then:
; CHECK-NOT: store
; CHECK: join:
; CHECK: store float %{{.*}}, ptr %y
; CHECK-NEXT: ret void
define void @call_of_arithmetic(ptr %arguments, float %a, float %b) {
entry:
  %y = load ptr, ptr %arguments, !invariant.load !0
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %then, label %else
then:
  %f = call float @compute(float %a)
  store float %f, ptr %y
  br label %join
else:
  store float %b, ptr %y
  br label %join
join:
  ret void
}

!0 = !{}
