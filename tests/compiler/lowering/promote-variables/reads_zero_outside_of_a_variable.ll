; A load at a constant place outside of a variable gives zero, not a poison value, and a store there does nothing. The
; borders are the last element and the one after it, the one before the first, and an access that is half inside.
; RUN: kiln-opt --passes=promote-variables %s | FileCheck %s

; CHECK-LABEL: define i32 @last(
; CHECK: ret i32 %x
define i32 @last(i32 %x) {
  %v = alloca [8 x i32]
  %a = getelementptr [8 x i32], ptr %v, i64 0, i64 7
  store i32 %x, ptr %a
  %r = load i32, ptr %a
  ret i32 %r
}

; CHECK-LABEL: define i32 @past_the_last(
; CHECK: ret i32 0
define i32 @past_the_last(i32 %x) {
  %v = alloca [8 x i32]
  %a = getelementptr [8 x i32], ptr %v, i64 0, i64 8
  store i32 %x, ptr %a
  %r = load i32, ptr %a
  ret i32 %r
}

; CHECK-LABEL: define i32 @before_the_first(
; CHECK: ret i32 0
define i32 @before_the_first(i32 %x) {
  %v = alloca [8 x i32]
  %a = getelementptr [8 x i32], ptr %v, i64 0, i64 -1
  store i32 %x, ptr %a
  %r = load i32, ptr %a
  ret i32 %r
}

; The store of 8 bytes does not happen, not even in part.
; CHECK-LABEL: define i32 @half_inside(
; CHECK: ret i32 %x
define i32 @half_inside(i32 %x, i64 %y) {
  %v = alloca [8 x i32]
  %a = getelementptr [8 x i32], ptr %v, i64 0, i64 7
  store i32 %x, ptr %a
  store i64 %y, ptr %a, align 4
  %r = load i32, ptr %a
  ret i32 %r
}
