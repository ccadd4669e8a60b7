; A uniform condition chooses whether lanes begin or end a loop at numbers of their own: it decides which of two loops
; runs, and one of them has a uniform counter.
; RUN: kiln-opt --passes=loop-unswitching %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define i32 @begin(
; CHECK: br i1 %diagonal, label %[[OWN:.*]], label %[[ALL:.*]]
; CHECK: phi i32 [ 0, %{{.*}} ], [ %{{.*}}, %loop.else ]
; CHECK: phi i32 [ %next_lane, %{{.*}} ], [ %next, %loop ]
define i32 @begin(ptr %x, i32 %n, i1 %diagonal) {
entry:
  %lane = call i32 @__kiln_lane()
  %next_lane = add i32 %lane, 1
  %first = select i1 %diagonal, i32 %next_lane, i32 0
  br label %loop
loop:
  %i = phi i32 [ %first, %entry ], [ %next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %total, %loop ]
  %at = getelementptr i32, ptr %x, i32 %i
  %value = load i32, ptr %at
  %total = add i32 %sum, %value
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret i32 %total
}

; CHECK-LABEL: define i32 @end(
; CHECK: br i1 %causal
; CHECK: icmp slt i32 %{{.*}}, %n
; CHECK: icmp slt i32 %next, %lane
define i32 @end(ptr %x, i32 %n, i1 %causal) {
entry:
  %lane = call i32 @__kiln_lane()
  %bound = select i1 %causal, i32 %lane, i32 %n
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %total, %loop ]
  %at = getelementptr i32, ptr %x, i32 %i
  %value = load i32, ptr %at
  %total = add i32 %sum, %value
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %bound
  br i1 %more, label %loop, label %end
end:
  ret i32 %total
}
