; All lanes of the mask reach the call: it is in no branch, in a uniform one, behind a join, or the lanes on the other
; path return without waiting again, which counts as arrived.
; RUN: kiln-opt --passes=warp-masks %s | FileCheck %s

; CHECK-DAG: ; straight_line: masks name the lanes that are together
; CHECK-DAG: ; uniform_branch: masks name the lanes that are together
; CHECK-DAG: ; behind_a_join: masks name the lanes that are together
; CHECK-DAG: ; others_return: masks name the lanes that are together

declare i32 @__kiln_lane()
declare void @__kiln_mask(i32) convergent

define void @straight_line() {
  call void @__kiln_mask(i32 -1) convergent
  ret void
}

define void @uniform_branch(i1 %c) {
entry:
  br i1 %c, label %then, label %else
then:
  call void @__kiln_mask(i32 -1) convergent
  ret void
else:
  call void @__kiln_mask(i32 -1) convergent
  ret void
}

define void @behind_a_join(ptr %y) {
entry:
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %then, label %join
then:
  store i32 %lane, ptr %y
  br label %join
join:
  call void @__kiln_mask(i32 -1) convergent
  ret void
}

define void @others_return() {
entry:
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %leave, label %call
leave:
  ret void
call:
  call void @__kiln_mask(i32 -1) convergent
  ret void
}
