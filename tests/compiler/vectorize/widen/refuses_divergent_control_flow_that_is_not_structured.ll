; A divergent branch has one side, which joins at its other successor, and a divergent loop one exit, at its latch.
; Otherwise the function stays a declaration and the reason is said; structuring makes it possible. A uniform branch may
; have two sides.
; RUN: kiln-opt --passes=widen --full %s | FileCheck %s --check-prefix=REFUSED
; RUN: kiln-opt --passes=structurize,widen --full %s | FileCheck %s --check-prefix=STRUCTURED
; RUN: kiln-opt --passes=widen --full --remarks %s 2>&1 | FileCheck %s --check-prefix=REMARK

; REMARK: remark: widen: the SIMD engine does not take the kernel: a branch without a join
; REMARK-NOT: remark:

declare i32 @__kiln_lane()

; REFUSED: ; two_sides: a branch without a join
; REFUSED-NOT: uniform_sides:
; REFUSED: declare void @two_sides(
; REFUSED: define void @uniform_sides(

; STRUCTURED-NOT: two_sides:
; STRUCTURED: define void @two_sides(
define void @two_sides(ptr %y, i32 %lanes) {
entry:
  %lane = call i32 @__kiln_lane()
  %to = getelementptr i32, ptr %y, i32 %lane
  %odd = trunc i32 %lane to i1
  br i1 %odd, label %then, label %else
then:
  store i32 1, ptr %to
  br label %join
else:
  store i32 2, ptr %to
  br label %join
join:
  ret void
}

define void @uniform_sides(ptr %y, i1 %c, i32 %lanes) {
entry:
  br i1 %c, label %then, label %else
then:
  store i32 1, ptr %y
  br label %join
else:
  store i32 2, ptr %y
  br label %join
join:
  ret void
}
