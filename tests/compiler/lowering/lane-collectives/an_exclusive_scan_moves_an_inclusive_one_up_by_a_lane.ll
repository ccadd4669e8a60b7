; A scan combines with the lanes 1, 2, 4, … below, where there are that many in the group. An exclusive scan has the
; result of the lane before; the first lane has the identity.
; RUN: kiln-opt --passes=convergence-points-in-loops,lane-collectives --function=inclusive %s | FileCheck %s --check-prefix=INCLUSIVE
; RUN: kiln-opt --passes=convergence-points-in-loops,lane-collectives --function=inclusive %s | FileCheck %s --check-prefix=INCLUSIVE
; RUN: kiln-opt --passes=convergence-points-in-loops,lane-collectives --function=exclusive %s | FileCheck %s --check-prefix=EXCLUSIVE
; RUN: kiln-opt --passes=convergence-points-in-loops,lane-collectives --function=exclusive %s | FileCheck %s --check-prefix=EXCLUSIVE

declare i64 @__kiln_exchange(i32, i32, i32, ptr, i64, i64, i64) convergent

define internal i64 @sum(i64 %a, i64 %b) {
  %x = trunc i64 %a to i32
  %y = trunc i64 %b to i32
  %s = add i32 %x, %y
  %r = zext i32 %s to i64
  ret i64 %r
}

; INCLUSIVE-LABEL: define i64 @inclusive(
; INCLUSIVE: %[[TAKEN:.*]] = call i32 @__kiln_lanes_take32(
; INCLUSIVE-NEXT: call i32 @__kiln_lanes_up32(i32 %[[TAKEN]], i32 1)
; INCLUSIVE: %[[ONE:.*]] = select i1 %{{.*}}, i32 %{{.*}}, i32 %[[TAKEN]]
; INCLUSIVE: call i32 @__kiln_lanes_up32(i32 %[[ONE]], i32 2)
; INCLUSIVE-NOT: @__kiln_lanes_up32
; INCLUSIVE: ret i64
define i64 @inclusive(i64 %value) {
  %r = call i64 @__kiln_exchange(i32 1, i32 4, i32 4, ptr @sum, i64 7, i64 %value, i64 0) convergent
  ret i64 %r
}

; EXCLUSIVE-LABEL: define i64 @exclusive(
; EXCLUSIVE: call i32 @__kiln_lanes_up32(i32 %{{.*}}, i32 1)
; EXCLUSIVE: call i32 @__kiln_lanes_up32(i32 %{{.*}}, i32 2)
; EXCLUSIVE: %[[TWO:.*]] = select i1
; EXCLUSIVE-NEXT: %[[BEFORE:.*]] = call i32 @__kiln_lanes_up32(i32 %[[TWO]], i32 1)
; EXCLUSIVE-NEXT: select i1 %{{.*}}, i32 %[[BEFORE]], i32 7
define i64 @exclusive(i64 %value) {
  %r = call i64 @__kiln_exchange(i32 1, i32 5, i32 4, ptr @sum, i64 7, i64 %value, i64 0) convergent
  ret i64 %r
}
