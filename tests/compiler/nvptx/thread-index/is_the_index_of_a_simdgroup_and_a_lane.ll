; The index of a thread in its threadgroup is a multiple of 32 and the lane, which differs between threads. Then passes
; see what all threads of a simdgroup have in common.
; RUN: kiln-opt --passes=thread-index %s | FileCheck %s
; RUN: kiln-opt --passes=thread-index,instcombine %s | FileCheck %s --check-prefix=UNIFORM

declare i32 @__kiln_value(i32)

; CHECK-LABEL: define i32 @index(
; CHECK-NEXT: %[[SIMDGROUP:.+]] = call i32 @__kiln_simdgroup()
; CHECK-NEXT: %[[FIRST:.+]] = and i32 %[[SIMDGROUP]], -32
; CHECK-NEXT: %[[LANE:.+]] = call range(i32 0, 32) i32 @__kiln_lane()
; CHECK-NEXT: %[[INDEX:.+]] = or disjoint i32 %[[FIRST]], %[[LANE]]
; CHECK-NEXT: ret i32 %[[INDEX]]
define i32 @index() {
  %index = call i32 @__kiln_value(i32 18)
  ret i32 %index
}

; UNIFORM-LABEL: define i32 @number_of_simdgroup(
; UNIFORM-NOT: @__kiln_lane()
; UNIFORM: ret
define i32 @number_of_simdgroup() {
  %index = call i32 @__kiln_value(i32 18)
  %number = lshr i32 %index, 5
  ret i32 %number
}
