; An array that is indexed at run time stays in memory, with the address as the body wrote it: whether it is inside is
; the guard's question, even where promotion finds the index to be constant, and outside.
; RUN: kiln-opt --passes=promote-variables %s | FileCheck %s

; CHECK-LABEL: define i32 @at_run_time(
; CHECK: %v = alloca [8 x i32]
; CHECK: %a = getelementptr [8 x i32], ptr %v, i64 0, i64 %i
; CHECK-NEXT: store i32 %x, ptr %a
; CHECK: %r = load i32, ptr %b
; CHECK-NOT: freeze
; CHECK: ret i32 %r
define i32 @at_run_time(i32 %x, i64 %i, i64 %j) {
  %v = alloca [8 x i32]
  %a = getelementptr [8 x i32], ptr %v, i64 0, i64 %i
  store i32 %x, ptr %a
  %b = getelementptr [8 x i32], ptr %v, i64 0, i64 %j
  %r = load i32, ptr %b
  ret i32 %r
}

; The index is a variable, which becomes 8.
; CHECK-LABEL: define i32 @found_outside(
; CHECK: [[V:%.*]] = alloca [8 x i32]
; CHECK: [[A:%.*]] = getelementptr [8 x i32], ptr [[V]], i64 0, i64 8
; CHECK-NEXT: %r = load i32, ptr [[A]]
; CHECK-NOT: {{freeze|poison|undef}}
; CHECK: ret i32 %r
define i32 @found_outside() {
  %index = alloca i64
  %v = alloca [8 x i32]
  store i64 8, ptr %index
  %i = load i64, ptr %index
  %a = getelementptr [8 x i32], ptr %v, i64 0, i64 %i
  %r = load i32, ptr %a
  ret i32 %r
}
