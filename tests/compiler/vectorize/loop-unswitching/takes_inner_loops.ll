; The border: the loop whose bound it is, not the loop around it; and the select may be in the latter.
; RUN: kiln-opt --passes=loop-unswitching %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @nested(
; CHECK: outer:
; CHECK: br i1 %{{.*}}, label %{{.*}}, label %{{.*}}
; CHECK-NOT: outer.else
; CHECK: inner.else:
; CHECK: {{^}}inner:
define void @nested(ptr %x, i32 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  br label %outer
outer:
  %k = phi i32 [ 0, %entry ], [ %k.next, %latch ]
  %is_first = icmp eq i32 %k, 3
  %first = select i1 %is_first, i32 %lane, i32 0
  br label %inner
inner:
  %i = phi i32 [ %first, %outer ], [ %next, %inner ]
  %at = getelementptr i32, ptr %x, i32 %i
  store i32 %k, ptr %at
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %inner, label %latch
latch:
  %k.next = add i32 %k, 1
  %again = icmp slt i32 %k.next, %n
  br i1 %again, label %outer, label %end
end:
  ret void
}

; Two bounds by one condition: both copies have their own.
; CHECK-LABEL: define void @both_bounds(
; CHECK: br i1 %is
; CHECK: icmp slt i32 %{{.*}}, %lane
; CHECK: icmp slt i32 %next, %n
define void @both_bounds(ptr %x, i32 %n, i32 %k) {
entry:
  %lane = call i32 @__kiln_lane()
  %is = icmp eq i32 %k, 3
  %first = select i1 %is, i32 %lane, i32 0
  %last = select i1 %is, i32 %n, i32 %lane
  br label %loop
loop:
  %i = phi i32 [ %first, %entry ], [ %next, %loop ]
  %at = getelementptr i32, ptr %x, i32 %i
  store i32 %i, ptr %at
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %last
  br i1 %more, label %loop, label %end
end:
  ret void
}

; A loop with two ways in: the condition is not known on both.
; CHECK-LABEL: define void @two_entries(
; CHECK-NOT: .else
; CHECK: ret void
define void @two_entries(ptr %x, i32 %n, i1 %c) {
entry:
  %lane = call i32 @__kiln_lane()
  br i1 %c, label %one, label %loop
one:
  %v = load i32, ptr %x
  %is = icmp eq i32 %v, 3
  %first = select i1 %is, i32 %lane, i32 0
  br label %loop
loop:
  %i = phi i32 [ %first, %one ], [ 7, %entry ], [ %next, %loop ]
  %at = getelementptr i32, ptr %x, i32 %i
  store i32 %i, ptr %at
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}
