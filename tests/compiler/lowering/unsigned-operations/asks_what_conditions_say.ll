; Where a condition has shown that a number is not negative it is divided without a sign; elsewhere not. Comparisons that
; a number's range decides are dropped.
; RUN: kiln-opt --passes=unsigned-operations %s | FileCheck %s

declare i32 @__kiln_value(i32)

; CHECK-LABEL: define i32 @guarded(
; CHECK: positive:
; CHECK-NEXT: udiv i32 %n, 4
; CHECK: other:
; CHECK-NEXT: sdiv i32 %n, 4
define i32 @guarded(i32 %n) {
  %is_positive = icmp sge i32 %n, 1
  br i1 %is_positive, label %positive, label %other
positive:
  %a = sdiv i32 %n, 4
  ret i32 %a
other:
  %b = sdiv i32 %n, 4
  ret i32 %b
}

; CHECK-LABEL: define i1 @borders(
; CHECK: %is_low = icmp slt i32 %left, 0
; CHECK: %a = or i1 false, %is_low
; CHECK: ret i1 true
define i1 @borders(ptr %y) {
  %x = call i32 @__kiln_value(i32 0)
  %left = sub i32 %x, 1
  %is_negative = icmp slt i32 %x, 0
  %is_low = icmp slt i32 %left, 0
  %a = or i1 %is_negative, %is_low
  store i1 %a, ptr %y
  %is_below = icmp sle i32 %left, 1023
  ret i1 %is_below
}

; The constant may stand first, as in `0 <= x`.
; CHECK-LABEL: define i1 @constant_first(
; CHECK: %is_low = icmp sle i32 0, %left
; CHECK: ret i1 true
define i1 @constant_first(ptr %y) {
  %x = call i32 @__kiln_value(i32 0)
  %left = sub i32 %x, 1
  %is_low = icmp sle i32 0, %left
  store i1 %is_low, ptr %y
  %is_positive = icmp sle i32 0, %x
  ret i1 %is_positive
}

; An unsigned comparison is LLVM's.
; CHECK-LABEL: define i1 @unsigned_order(
; CHECK: icmp ult i32 %x, 2048
define i1 @unsigned_order() {
  %x = call i32 @__kiln_value(i32 0)
  %is_less = icmp ult i32 %x, 2048
  ret i1 %is_less
}

; A counter that starts at 0 and grows to a bound.
; CHECK-LABEL: define void @counter(
; CHECK: %half = udiv i32 %k, 2
define void @counter(ptr %y, i32 %n) {
entry:
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %body ]
  %goes_on = icmp slt i32 %k, %n
  br i1 %goes_on, label %body, label %end
body:
  %half = sdiv i32 %k, 2
  store i32 %half, ptr %y
  %next = add i32 %k, 1
  br label %loop
end:
  ret void
}
