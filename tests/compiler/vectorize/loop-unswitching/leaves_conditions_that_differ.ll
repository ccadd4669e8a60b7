; A condition that differs between lanes, two bounds that differ, two that do not, and loops with barriers stay.
; RUN: kiln-opt --passes=loop-unswitching %s | FileCheck %s --implicit-check-not=.else

declare i32 @__kiln_lane()
declare void @waits() convergent

; CHECK-LABEL: define void @condition(
define void @condition(ptr %x, i32 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  %odd = trunc i32 %lane to i1
  %first = select i1 %odd, i32 %lane, i32 0
  br label %loop
loop:
  %i = phi i32 [ %first, %entry ], [ %next, %loop ]
  %at = getelementptr i32, ptr %x, i32 %i
  store i32 1, ptr %at
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; CHECK-LABEL: define void @both(
define void @both(ptr %x, i32 %n, i1 %c) {
entry:
  %lane = call i32 @__kiln_lane()
  %twice = shl i32 %lane, 1
  %first = select i1 %c, i32 %lane, i32 %twice
  br label %loop
loop:
  %i = phi i32 [ %first, %entry ], [ %next, %loop ]
  %at = getelementptr i32, ptr %x, i32 %i
  store i32 1, ptr %at
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; CHECK-LABEL: define void @neither(
define void @neither(ptr %x, i32 %n, i1 %c) {
entry:
  %first = select i1 %c, i32 %n, i32 0
  br label %loop
loop:
  %i = phi i32 [ %first, %entry ], [ %next, %loop ]
  %at = getelementptr i32, ptr %x, i32 %i
  store i32 1, ptr %at
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; CHECK-LABEL: define void @barrier(
define void @barrier(ptr %x, i32 %n, i1 %c) {
entry:
  %lane = call i32 @__kiln_lane()
  %first = select i1 %c, i32 %lane, i32 0
  br label %loop
loop:
  %i = phi i32 [ %first, %entry ], [ %next, %loop ]
  call void @waits()
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}
