; A position is a multiple of 32 plus the lane. Sums with multiples, quotients and remainders by multiples keep this
; form or lose the lane, so that x / 64 is the same in all lanes and x % 64 is consecutive over them.
; RUN: kiln-opt --passes=affine-lanes,dce %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define i32 @sum(
; CHECK: %[[SUM:.*]] = add i32 %block, %others
; CHECK-NEXT: %[[X:.*]] = or disjoint i32 %[[SUM]], %lane
; CHECK-NEXT: ret i32 %[[X]]
define i32 @sum(i32 %x, i32 %n) {
  %lane = call i32 @__kiln_lane()
  %block = and i32 %x, -32
  %others = shl i32 %n, 5
  %position = or disjoint i32 %block, %lane
  %result = add i32 %others, %position
  ret i32 %result
}

; CHECK-LABEL: define i32 @quotient(
; CHECK: %[[Q:.*]] = udiv i32 %block, 64
; CHECK-NEXT: ret i32 %[[Q]]
define i32 @quotient(i32 %x) {
  %lane = call i32 @__kiln_lane()
  %block = and i32 %x, -32
  %position = or disjoint i32 %block, %lane
  %result = udiv i32 %position, 64
  ret i32 %result
}

; CHECK-LABEL: define i32 @remainder(
; CHECK: %[[R:.*]] = urem i32 %block, 96
; CHECK-NEXT: %[[X:.*]] = or disjoint i32 %[[R]], %lane
; CHECK-NEXT: ret i32 %[[X]]
define i32 @remainder(i32 %x) {
  %lane = call i32 @__kiln_lane()
  %block = and i32 %x, -32
  %position = or disjoint i32 %block, %lane
  %result = urem i32 %position, 96
  ret i32 %result
}

; A split value is an operand of the next: (x + 32) & 63 after that.
; CHECK-LABEL: define i32 @chain(
; CHECK: %[[SUM:.*]] = add i32 %block, 32
; CHECK: %[[M:.*]] = and i32 %[[SUM]], 63
; CHECK-NEXT: %[[X:.*]] = or disjoint i32 %[[M]], %lane
; CHECK-NEXT: ret i32 %[[X]]
define i32 @chain(i32 %x) {
  %lane = call i32 @__kiln_lane()
  %block = and i32 %x, -32
  %position = or disjoint i32 %block, %lane
  %next = add i32 %position, 32
  %result = and i32 %next, 63
  ret i32 %result
}

; A counter that starts with the position and grows by a multiple is a uniform counter, plus the lane.
; CHECK-LABEL: define void @counter(
; CHECK: loop:
; CHECK-NEXT: %[[REST:.*]] = phi i32 [ %block, %entry ], [ %[[NEXT:.*]], %loop ]
; CHECK-NEXT: %[[I:.*]] = or disjoint i32 %[[REST]], %lane
; CHECK: getelementptr float, ptr %y, i32 %[[I]]
; CHECK: %[[NEXT]] = add i32 %[[REST]], 256
define void @counter(ptr %y, i32 %x, i32 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  %block = and i32 %x, -32
  %position = or disjoint i32 %block, %lane
  br label %loop
loop:
  %i = phi i32 [ %position, %entry ], [ %i.next, %loop ]
  %to = getelementptr float, ptr %y, i32 %i
  store float 1.0, ptr %to
  %i.next = add i32 %i, 256
  %again = icmp ult i32 %i.next, %n
  br i1 %again, label %loop, label %done
done:
  ret void
}
