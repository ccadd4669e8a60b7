; Two of the join's three predecessors store. They get a block between them and the join, and the third does not store.
; RUN: kiln-opt --passes=sink-stores %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @two_of_three(
; CHECK: then:
; CHECK-NEXT: br label %[[STORING:.*]]
; CHECK: else:
; CHECK-NEXT: br label %[[STORING]]
; CHECK: none:
; CHECK-NEXT: br label %join
; CHECK: [[STORING]]:
; CHECK-NEXT: %[[VALUE:.*]] = phi float [ %b, %else ], [ %a, %then ]
; CHECK-NEXT: store float %[[VALUE]], ptr %y
; CHECK-NEXT: br label %join
; CHECK: join:
; CHECK-NEXT: ret void
define void @two_of_three(ptr %arguments, i1 %c, float %a, float %b) {
entry:
  %y = load ptr, ptr %arguments, !invariant.load !0
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  br i1 %c, label %some, label %none
some:
  br i1 %odd, label %then, label %else
then:
  store float %a, ptr %y
  br label %join
else:
  store float %b, ptr %y
  br label %join
none:
  br label %join
join:
  ret void
}

!0 = !{}
