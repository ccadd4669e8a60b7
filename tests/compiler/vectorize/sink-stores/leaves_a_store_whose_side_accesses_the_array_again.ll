; A store is moved to the end of its side only over accesses of other arrays. A load or store of the same array after
; it keeps it there, and so does memory that nothing is known of.
; RUN: kiln-opt --passes=sink-stores %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define float @reads_it_again(
; CHECK: then:
; CHECK-NEXT: store float %a, ptr %y
; CHECK: else:
; CHECK-NEXT: store float %b, ptr %y
; CHECK: join:
; CHECK-NOT: store
; CHECK: ret float
define float @reads_it_again(ptr %arguments, float %a, float %b) {
entry:
  %y = load ptr, ptr %arguments, !invariant.load !0
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %then, label %else
then:
  store float %a, ptr %y
  %again = load float, ptr %y
  br label %join
else:
  store float %b, ptr %y
  br label %join
join:
  %read = phi float [ %again, %then ], [ 0.0, %else ]
  ret float %read
}

; CHECK-LABEL: define float @reads_unknown_memory(
; CHECK: then:
; CHECK-NEXT: store float %a, ptr %y
; CHECK: else:
; CHECK-NEXT: store float %b, ptr %y
; CHECK: join:
; CHECK-NOT: store
; CHECK: ret float
define float @reads_unknown_memory(ptr %arguments, ptr %unknown, float %a, float %b) {
entry:
  %y = load ptr, ptr %arguments, !invariant.load !0
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %then, label %else
then:
  store float %a, ptr %y
  %again = load float, ptr %unknown
  br label %join
else:
  store float %b, ptr %y
  br label %join
join:
  %read = phi float [ %again, %then ], [ 0.0, %else ]
  ret float %read
}

; Another argument is another array.
; CHECK-LABEL: define float @reads_another_array(
; CHECK: then:
; CHECK-NEXT: %again = load float, ptr %x
; CHECK: join:
; CHECK: store float %{{.*}}, ptr %y
; CHECK: ret float
define float @reads_another_array(ptr %arguments, float %a, float %b) {
entry:
  %y = load ptr, ptr %arguments, !invariant.load !0
  %next = getelementptr i8, ptr %arguments, i64 24
  %x = load ptr, ptr %next, !invariant.load !0
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %then, label %else
then:
  store float %a, ptr %y
  %again = load float, ptr %x
  br label %join
else:
  store float %b, ptr %y
  br label %join
join:
  %read = phi float [ %again, %then ], [ 0.0, %else ]
  ret float %read
}

!0 = !{}
