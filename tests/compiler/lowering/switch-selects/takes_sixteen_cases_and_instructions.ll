; The border: sixteen cheap instructions in the cases together, and no more.
; RUN: kiln-opt --passes=switch-selects %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define i32 @sixteen(
; CHECK-NOT: switch
; CHECK: ret i32
define i32 @sixteen(i32 %a) {
entry:
  %lane = call i32 @__kiln_lane()
  switch i32 %lane, label %end [ i32 0, label %one ]
one:
  %1 = add i32 %a, 1
  %2 = xor i32 %1, 2
  %3 = add i32 %2, 3
  %4 = xor i32 %3, 4
  %5 = add i32 %4, 5
  %6 = xor i32 %5, 6
  %7 = add i32 %6, 7
  %8 = xor i32 %7, 8
  %9 = add i32 %8, 9
  %10 = xor i32 %9, 10
  %11 = add i32 %10, 11
  %12 = xor i32 %11, 12
  %13 = add i32 %12, 13
  %14 = xor i32 %13, 14
  %15 = add i32 %14, 15
  %16 = xor i32 %15, 16
  br label %end
end:
  %r = phi i32 [ 0, %entry ], [ %16, %one ]
  ret i32 %r
}

; CHECK-LABEL: define i32 @seventeen(
; CHECK: switch
define i32 @seventeen(i32 %a) {
entry:
  %lane = call i32 @__kiln_lane()
  switch i32 %lane, label %end [ i32 0, label %one ]
one:
  %1 = add i32 %a, 1
  %2 = xor i32 %1, 2
  %3 = add i32 %2, 3
  %4 = xor i32 %3, 4
  %5 = add i32 %4, 5
  %6 = xor i32 %5, 6
  %7 = add i32 %6, 7
  %8 = xor i32 %7, 8
  %9 = add i32 %8, 9
  %10 = xor i32 %9, 10
  %11 = add i32 %10, 11
  %12 = xor i32 %11, 12
  %13 = add i32 %12, 13
  %14 = xor i32 %13, 14
  %15 = add i32 %14, 15
  %16 = xor i32 %15, 16
  %17 = xor i32 %16, %a
  br label %end
end:
  %r = phi i32 [ 0, %entry ], [ %17, %one ]
  ret i32 %r
}

; Seventeen cases.
; CHECK-LABEL: define i32 @cases(
; CHECK: switch
define i32 @cases() {
entry:
  %lane = call i32 @__kiln_lane()
  switch i32 %lane, label %end [
    i32 0, label %one
    i32 1, label %one
    i32 2, label %one
    i32 3, label %one
    i32 4, label %one
    i32 5, label %one
    i32 6, label %one
    i32 7, label %one
    i32 8, label %one
    i32 9, label %one
    i32 10, label %one
    i32 11, label %one
    i32 12, label %one
    i32 13, label %one
    i32 14, label %one
    i32 15, label %one
    i32 16, label %one
  ]
one:
  br label %end
end:
  %r = phi i32 [ 0, %entry ], [ 1, %one ]
  ret i32 %r
}
