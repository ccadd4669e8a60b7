; The first thread of a group, `i - (i & 15)`, is a change of the lane's bits, also where InstCombine has seen that
; `i & 15` is the lane's.
; RUN: kiln-opt --passes=affine-lanes %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define i32 @first_of_group(
; CHECK: %[[FIRST:.*]] = and i32 %lane, -16
; CHECK: %[[SUM:.*]] = or disjoint i32 %{{.*}}, %[[FIRST]]
; CHECK: ret i32 %[[SUM]]
define i32 @first_of_group(i32 %n) {
  %m = and i32 %n, 992
  %lane = call i32 @__kiln_lane()
  %i = or disjoint i32 %m, %lane
  %bits = and i32 %lane, 15
  %first = sub nsw i32 %i, %bits
  ret i32 %first
}

; In rows of 16 threads, too.
; CHECK-LABEL: define i32 @of_short_rows(
; CHECK: and i32 %lane, -4
; CHECK-NOT: sub
; CHECK: ret i32
define i32 @of_short_rows(i32 %n) {
  %m = and i32 %n, 1008
  %lane = call i32 @__kiln_lane()
  %i = add i32 %m, %lane
  %bits = and i32 %lane, 3
  %first = sub i32 %i, %bits
  ret i32 %first
}

; The lowest bits of something else stay.
; CHECK-LABEL: define i32 @of_another(
; CHECK: sub i32
define i32 @of_another(i32 %n, i32 %k) {
  %m = and i32 %n, 992
  %lane = call i32 @__kiln_lane()
  %i = or disjoint i32 %m, %lane
  %bits = and i32 %k, 15
  %first = sub i32 %i, %bits
  ret i32 %first
}

; What is added to the lane may carry into the other part, which is not disjoint any more.
; CHECK-LABEL: define i32 @of_a_sum(
; CHECK: and i32 %lane, -16
; CHECK-NOT: or disjoint i32 %m, %{{[0-9]+}}
; CHECK: ret i32
define i32 @of_a_sum(i32 %n, i32 %k) {
  %m = and i32 %n, -64
  %lane = call i32 @__kiln_lane()
  %x = add i32 %lane, %k
  %i = or disjoint i32 %m, %x
  %bits = and i32 %lane, 15
  %first = sub i32 %i, %bits
  ret i32 %first
}
