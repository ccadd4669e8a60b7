; An inactive lane counts as one with the identity. Pairs at distance 1, 2, 4, … are combined, with the function
; inlined; of a whole simdgroup lane 0's result is everyone's. The lower lane's value comes first where the order
; matters.
; RUN: kiln-opt --passes=convergence-points-in-loops,lane-collectives --function=simd_sum %s | FileCheck %s --check-prefix=SIMD-SUM
; RUN: kiln-opt --passes=convergence-points-in-loops,lane-collectives --function=simd_sum %s | FileCheck %s --check-prefix=SIMD-SUM
; RUN: kiln-opt --passes=convergence-points-in-loops,lane-collectives --function=quad_sum %s | FileCheck %s --check-prefix=QUAD-SUM
; RUN: kiln-opt --passes=convergence-points-in-loops,lane-collectives --function=quad_sum %s | FileCheck %s --check-prefix=QUAD-SUM
; RUN: kiln-opt --passes=convergence-points-in-loops,lane-collectives --function=order_matters %s | FileCheck %s --check-prefix=ORDER-MATTERS
; RUN: kiln-opt --passes=convergence-points-in-loops,lane-collectives --function=order_matters %s | FileCheck %s --check-prefix=ORDER-MATTERS

declare i64 @__kiln_exchange(i32, i32, i32, ptr, i64, i64, i64) convergent

define internal i64 @sum(i64 %a, i64 %b) {
  %x = trunc i64 %a to i32
  %y = trunc i64 %b to i32
  %s = add i32 %x, %y
  %r = zext i32 %s to i64
  ret i64 %r
}

define internal i64 @difference(i64 %a, i64 %b) {
  %x = trunc i64 %a to i32
  %y = trunc i64 %b to i32
  %s = sub i32 %x, %y
  %r = zext i32 %s to i64
  ret i64 %r
}

; SIMD-SUM-LABEL: define i64 @simd_sum(
; SIMD-SUM: %[[TAKEN:.*]] = call i32 @__kiln_lanes_take32(i32 %{{.*}}, i32 7)
; SIMD-SUM-NEXT: %[[OTHER:.*]] = call i32 @__kiln_lanes_exchange32(i32 %[[TAKEN]], i32 1)
; SIMD-SUM-NOT: call i64 @sum
; SIMD-SUM: add i{{32|64}}
; SIMD-SUM: call i32 @__kiln_lanes_exchange32(i32 %{{.*}}, i32 2)
; SIMD-SUM: call i32 @__kiln_lanes_exchange32(i32 %{{.*}}, i32 4)
; SIMD-SUM: call i32 @__kiln_lanes_exchange32(i32 %{{.*}}, i32 8)
; SIMD-SUM: call i32 @__kiln_lanes_exchange32(i32 %{{.*}}, i32 16)
; SIMD-SUM-NOT: @__kiln_lanes_exchange32
; SIMD-SUM: call i32 @__kiln_lanes_first32(
; SIMD-SUM: ret i64
define i64 @simd_sum(i64 %value) {
  %r = call i64 @__kiln_exchange(i32 1, i32 3, i32 32, ptr @sum, i64 7, i64 %value, i64 0) convergent
  ret i64 %r
}

; Groups of four lanes have a result each.
; QUAD-SUM-LABEL: define i64 @quad_sum(
; QUAD-SUM: call i32 @__kiln_lanes_exchange32(i32 %{{.*}}, i32 1)
; QUAD-SUM: call i32 @__kiln_lanes_exchange32(i32 %{{.*}}, i32 2)
; QUAD-SUM-NOT: @__kiln_lanes_exchange32
; QUAD-SUM-NOT: @__kiln_lanes_first32
; QUAD-SUM: ret i64
define i64 @quad_sum(i64 %value) {
  %r = call i64 @__kiln_exchange(i32 1, i32 3, i32 4, ptr @sum, i64 0, i64 %value, i64 0) convergent
  ret i64 %r
}

; ORDER-MATTERS-LABEL: define i64 @order_matters(
; ORDER-MATTERS: %[[LANE:.*]] = call i32 @__kiln_place()
; ORDER-MATTERS: %[[BIT:.*]] = and i32 %[[LANE]], 1
; ORDER-MATTERS-NEXT: %[[LOWER:.*]] = icmp eq i32 %[[BIT]], 0
; ORDER-MATTERS: %[[VALUE:.*]] = call i32 @__kiln_lanes_take32(
; ORDER-MATTERS-NEXT: %[[OTHER:.*]] = call i32 @__kiln_lanes_exchange32(i32 %[[VALUE]], i32 1)
; ORDER-MATTERS-NEXT: select i1 %[[LOWER]], i32 %[[VALUE]], i32 %[[OTHER]]
; ORDER-MATTERS-NEXT: select i1 %[[LOWER]], i32 %[[OTHER]], i32 %[[VALUE]]
define i64 @order_matters(i64 %value) {
  %r = call i64 @__kiln_exchange(i32 1, i32 3, i32 2, ptr @difference, i64 0, i64 %value, i64 0) convergent
  ret i64 %r
}
