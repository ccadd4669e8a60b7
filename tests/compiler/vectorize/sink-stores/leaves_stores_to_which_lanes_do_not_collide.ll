; Each lane has an element of its own, or all lanes take the same side: no order is to be kept, and a store that stays
; in its side may be consecutive.
; RUN: kiln-opt --passes=sink-stores %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @address_of_its_own(
; CHECK: then:
; CHECK-NEXT: store float %a
; CHECK: else:
; CHECK-NEXT: store float %b
; CHECK: join:
; CHECK-NEXT: ret void
define void @address_of_its_own(ptr %arguments, float %a, float %b) {
entry:
  %y = load ptr, ptr %arguments, !invariant.load !0
  %lane = call i32 @__kiln_lane()
  %i = shl i32 %lane, 2
  %address = getelementptr float, ptr %y, i32 %i
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %then, label %else
then:
  store float %a, ptr %address
  br label %join
else:
  store float %b, ptr %address
  br label %join
join:
  ret void
}

; CHECK-LABEL: define void @uniform_branch(
; CHECK: then:
; CHECK-NEXT: store float %a
; CHECK: else:
; CHECK-NEXT: store float %b
; CHECK: join:
; CHECK-NEXT: ret void
define void @uniform_branch(ptr %arguments, i1 %uniform, float %a, float %b) {
entry:
  %y = load ptr, ptr %arguments, !invariant.load !0
  br i1 %uniform, label %then, label %else
then:
  store float %a, ptr %y
  br label %join
else:
  store float %b, ptr %y
  br label %join
join:
  ret void
}

; Counters only: no address is loaded from memory, and they are different expressions.
; CHECK-LABEL: define void @different_computed_addresses(
; CHECK: then:
; CHECK: store float %a
; CHECK: else:
; CHECK: store float %b
; CHECK: join:
; CHECK-NEXT: ret void
define void @different_computed_addresses(ptr %arguments, i32 %n, float %a, float %b) {
entry:
  %y = load ptr, ptr %arguments, !invariant.load !0
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %then, label %else
then:
  %one = getelementptr float, ptr %y, i32 %n
  store float %a, ptr %one
  br label %join
else:
  %n.next = add i32 %n, 1
  %other = getelementptr float, ptr %y, i32 %n.next
  store float %b, ptr %other
  br label %join
join:
  ret void
}

; CHECK-LABEL: define void @different_types(
; CHECK: then:
; CHECK-NEXT: store float %a
; CHECK: else:
; CHECK-NEXT: store i32 %b
; CHECK: join:
; CHECK-NEXT: ret void
define void @different_types(ptr %arguments, float %a, i32 %b) {
entry:
  %y = load ptr, ptr %arguments, !invariant.load !0
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %then, label %else
then:
  store float %a, ptr %y
  br label %join
else:
  store i32 %b, ptr %y
  br label %join
join:
  ret void
}

!0 = !{}
