; All threads that will reach the collective are there, in the mask, so that no thread waits: a shuffle and a vote are one
; operation on lanes, of the value's own width.
; RUN: kiln-opt --passes=convergence-points-in-loops,lane-collectives --function=shuffle %s | FileCheck %s --check-prefix=SHUFFLE
; RUN: kiln-opt --passes=convergence-points-in-loops,lane-collectives --function=shuffle %s | FileCheck %s --check-prefix=SHUFFLE
; RUN: kiln-opt --passes=convergence-points-in-loops,lane-collectives --function=shuffle_of_64_bits %s | FileCheck %s --check-prefix=SHUFFLE-OF-64-BITS
; RUN: kiln-opt --passes=convergence-points-in-loops,lane-collectives --function=shuffle_of_64_bits %s | FileCheck %s --check-prefix=SHUFFLE-OF-64-BITS
; RUN: kiln-opt --passes=convergence-points-in-loops,lane-collectives --function=ballot %s | FileCheck %s --check-prefix=BALLOT
; RUN: kiln-opt --passes=convergence-points-in-loops,lane-collectives --function=ballot %s | FileCheck %s --check-prefix=BALLOT

declare i64 @__kiln_exchange(i32, i32, i32, ptr, i64, i64, i64) convergent

; SHUFFLE-LABEL: define i64 @shuffle(
; SHUFFLE-NOT: @__kiln_wait
; SHUFFLE: %[[SOURCE:.*]] = trunc i64 %lane to i32
; SHUFFLE-NEXT: %[[R:.*]] = call i32 @__kiln_lanes_shuffle32(i32 %value, i32 %[[SOURCE]])
; SHUFFLE-NEXT: %[[WIDE:.*]] = zext i32 %[[R]] to i64
; SHUFFLE-NEXT: ret i64 %[[WIDE]]
define i64 @shuffle(i32 %value, i64 %lane) {
  %wide = zext i32 %value to i64
  %r = call i64 @__kiln_exchange(i32 1, i32 1, i32 32, ptr null, i64 0, i64 %wide, i64 %lane) convergent
  ret i64 %r
}

; SHUFFLE-OF-64-BITS-LABEL: define i64 @shuffle_of_64_bits(
; SHUFFLE-OF-64-BITS: call i64 @__kiln_lanes_shuffle64(i64 %value, i32 %
define i64 @shuffle_of_64_bits(i64 %value, i64 %lane) {
  %r = call i64 @__kiln_exchange(i32 1, i32 1, i32 32, ptr null, i64 0, i64 %value, i64 %lane) convergent
  ret i64 %r
}

; BALLOT-LABEL: define i64 @ballot(
; BALLOT: %[[SET:.*]] = icmp ne i64 %value, 0
; BALLOT-NEXT: %[[R:.*]] = call i32 @__kiln_lanes_vote1(i1 %[[SET]])
; BALLOT-NEXT: %[[WIDE:.*]] = zext i32 %[[R]] to i64
; BALLOT-NEXT: ret i64 %[[WIDE]]
define i64 @ballot(i64 %value) {
  %r = call i64 @__kiln_exchange(i32 1, i32 2, i32 32, ptr null, i64 0, i64 %value, i64 0) convergent
  ret i64 %r
}
