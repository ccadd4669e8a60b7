; Both sides of a divergent branch store to the same element, whose index was loaded, so lanes may collide there. One
; store at the join writes in the order of lanes; two would write side after side.
; RUN: kiln-opt --passes=sink-stores %s | FileCheck %s

declare i32 @__kiln_lane()

; The address is computed before the branch.
; CHECK-LABEL: define void @same_address(
; CHECK: then:
; CHECK-NOT: store
; CHECK: join:
; CHECK-NEXT: %[[VALUE:.*]] = phi float [ %b, %else ], [ %a, %then ]
; CHECK-NEXT: store float %[[VALUE]], ptr %address, align 4
; CHECK-NEXT: ret void
define void @same_address(ptr %arguments, i1 %side, float %a, float %b) {
entry:
  %indices = load ptr, ptr %arguments, !invariant.load !0
  %next = getelementptr i8, ptr %arguments, i64 24
  %y = load ptr, ptr %next, !invariant.load !0
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i32, ptr %indices, i32 %lane
  %k = load i32, ptr %at
  %address = getelementptr float, ptr %y, i32 %k
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

; Each side computes the address; the join computes it once more.
; CHECK-LABEL: define void @same_expression(
; CHECK: join:
; CHECK-NEXT: %[[VALUE:.*]] = phi float [ %b, %else ], [ %a, %then ]
; CHECK-NEXT: %[[INDEX:.*]] = and i32 %k, 255
; CHECK-NEXT: %[[ADDRESS:.*]] = getelementptr float, ptr %y, i32 %[[INDEX]]
; CHECK-NEXT: store float %[[VALUE]], ptr %[[ADDRESS]]
; CHECK-NEXT: ret void
define void @same_expression(ptr %arguments, float %a, float %b) {
entry:
  %indices = load ptr, ptr %arguments, !invariant.load !0
  %next = getelementptr i8, ptr %arguments, i64 24
  %y = load ptr, ptr %next, !invariant.load !0
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i32, ptr %indices, i32 %lane
  %k = load i32, ptr %at
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %then, label %else
then:
  %one.index = and i32 %k, 255
  %one = getelementptr float, ptr %y, i32 %one.index
  store float %a, ptr %one
  br label %join
else:
  %other.index = and i32 %k, 255
  %other = getelementptr float, ptr %y, i32 %other.index
  store float %b, ptr %other
  br label %join
join:
  ret void
}

; One address is loaded from memory: it is a scatter in any case, so the address becomes a phi. The smaller of the
; alignments holds for both.
; CHECK-LABEL: define void @loaded_address(
; CHECK: join:
; CHECK-DAG: %[[VALUE:.*]] = phi float [ %b, %else ], [ %a, %then ]
; CHECK-DAG: %[[ADDRESS:.*]] = phi ptr [ %other, %else ], [ %one, %then ]
; CHECK: store float %[[VALUE]], ptr %[[ADDRESS]], align 2
; CHECK-NEXT: ret void
define void @loaded_address(ptr %arguments, float %a, float %b) {
entry:
  %indices = load ptr, ptr %arguments, !invariant.load !0
  %next = getelementptr i8, ptr %arguments, i64 24
  %y = load ptr, ptr %next, !invariant.load !0
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i32, ptr %indices, i32 %lane
  %k = load i32, ptr %at
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %then, label %else
then:
  %one = getelementptr float, ptr %y, i32 %k
  store float %a, ptr %one, align 4
  br label %join
else:
  %other = getelementptr float, ptr %y, i32 %lane
  store float %b, ptr %other, align 2
  br label %join
join:
  ret void
}

!0 = !{}
