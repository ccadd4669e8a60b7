; A guard chooses the sink if its condition is false. A variable that is chosen if a condition holds, or in both cases,
; is a body's own.
; RUN: kiln-opt --passes=hide-sinks %s | FileCheck %s

; CHECK-NOT: @__kiln_sink

; CHECK-LABEL: define void @first_choice(
; CHECK-NEXT: %own = alloca i32
; CHECK-NEXT: %one = select i1 %c, ptr %own, ptr %x
define void @first_choice(ptr %x, i1 %c) {
  %own = alloca i32
  %one = select i1 %c, ptr %own, ptr %x
  store i32 1, ptr %one
  ret void
}

; CHECK-LABEL: define void @both_choices(
; CHECK-NEXT: %own = alloca i32
define void @both_choices(ptr %x, i1 %c) {
  %own = alloca i32
  %one = select i1 %c, ptr %own, ptr %own
  store i32 1, ptr %one
  ret void
}

; CHECK-NOT: @__kiln_sink
