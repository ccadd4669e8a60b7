; A switch that lanes take differently, and that chooses among numbers, is a select for each number.
; RUN: kiln-opt --passes=switch-selects %s | FileCheck %s

declare i32 @__kiln_lane()

; Two cases have one result, and one that of the default: no select.
; CHECK-LABEL: define i64 @codes(
; CHECK: %[[C:.*]] = icmp eq i8 %base, 67
; CHECK: %[[G:.*]] = icmp eq i8 %base, 71
; CHECK: %[[S:.*]] = icmp eq i8 %base, 83
; CHECK: %[[T:.*]] = icmp eq i8 %base, 84
; CHECK: %[[TWO:.*]] = or i1 %[[C]], %[[S]]
; CHECK: %[[FIRST:.*]] = select i1 %[[TWO]], i64 1, i64 0
; CHECK: %[[SECOND:.*]] = select i1 %[[T]], i64 3, i64 %[[FIRST]]
; CHECK-NOT: switch
; CHECK: ret i64 %[[SECOND]]
define i64 @codes(ptr %x) {
entry:
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i8, ptr %x, i32 %lane
  %base = load i8, ptr %at
  switch i8 %base, label %end [
    i8 67, label %one
    i8 71, label %none
    i8 83, label %one
    i8 84, label %three
  ]
one:
  br label %end
none:
  br label %end
three:
  br label %end
end:
  %code = phi i64 [ 0, %entry ], [ 1, %one ], [ 0, %none ], [ 3, %three ]
  ret i64 %code
}

; What cases compute is computed for all lanes. A default that is not reached has no value.
; CHECK-LABEL: define i32 @operations(
; CHECK: %sum = add i32 %a, %b
; CHECK-NEXT: %difference = sub i32 %a, %b
; CHECK: %[[IS:.*]] = icmp eq i32 %lane, 1
; CHECK: %[[RESULT:.*]] = select i1 %[[IS]], i32 %difference, i32 %sum
; CHECK-NOT: switch
; CHECK: ret i32 %[[RESULT]]
define i32 @operations(i32 %a, i32 %b) {
entry:
  %lane = call i32 @__kiln_lane()
  switch i32 %lane, label %never [
    i32 0, label %add
    i32 1, label %subtract
  ]
add:
  %sum = add i32 %a, %b
  br label %end
subtract:
  %difference = sub i32 %a, %b
  br label %end
never:
  unreachable
end:
  %result = phi i32 [ %sum, %add ], [ %difference, %subtract ]
  ret i32 %result
}
