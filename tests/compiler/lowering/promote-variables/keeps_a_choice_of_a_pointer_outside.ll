; A pointer outside of a variable may be chosen along with one inside. It must not become poison: that would spoil the
; choice of the other one. A pointer inside is promoted through the choice.
; RUN: kiln-opt --passes=promote-variables %s | FileCheck %s

; CHECK-LABEL: define i32 @one_outside(
; CHECK: %v = alloca [2 x i32]
; CHECK: %p = select i1 %c, ptr %v, ptr %a
; CHECK-NEXT: %r = load i32, ptr %p
; CHECK-NOT: {{freeze|poison|undef}}
; CHECK: ret i32 %r
define i32 @one_outside(i32 %x, i1 %c) {
  %v = alloca [2 x i32]
  store i32 %x, ptr %v
  %a = getelementptr [2 x i32], ptr %v, i64 0, i64 2
  %p = select i1 %c, ptr %v, ptr %a
  %r = load i32, ptr %p
  ret i32 %r
}

; CHECK-LABEL: define i32 @both_inside(
; CHECK-NOT: alloca
; CHECK: [[R:%.*]] = select i1 %c, i32 %x, i32 %y
; CHECK: ret i32 [[R]]
define i32 @both_inside(i32 %x, i32 %y, i1 %c) {
  %v = alloca [2 x i32]
  store i32 %x, ptr %v
  %a = getelementptr [2 x i32], ptr %v, i64 0, i64 1
  store i32 %y, ptr %a
  %p = select i1 %c, ptr %v, ptr %a
  %r = load i32, ptr %p
  ret i32 %r
}
