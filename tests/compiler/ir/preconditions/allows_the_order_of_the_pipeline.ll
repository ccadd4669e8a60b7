; In the order of pipeline.cpp each pass finds what it takes for granted.
; RUN: kiln-opt --passes=mark-calls,inline,bounds-guards,convergence-points-in-loops,hide-sinks,lane-collectives,remove-warp-masks,structure-phis,components,remove-iterations,narrow-integers,lower-switch,sink-stores,guard-extension,structurize --function=__kiln_body %s | FileCheck %s

declare i64 @__kiln_exchange(i32, i32, i32, ptr, i64, i64, i64) convergent

define internal i64 @called(i64 %value) {
  %r = call i64 @__kiln_exchange(i32 1, i32 2, i32 32, ptr null, i64 0, i64 %value, i64 0) convergent
  ret i64 %r
}

; CHECK-LABEL: define i64 @__kiln_body(
; CHECK: call i32 @__kiln_lanes_vote1(
define i64 @__kiln_body(i64 %value) {
  %r = call i64 @called(i64 %value)
  ret i64 %r
}
