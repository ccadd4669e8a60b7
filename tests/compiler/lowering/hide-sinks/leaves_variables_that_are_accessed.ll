; A variable that is loaded, stored or passed on is one of the body's: a global variable would be shared by all threads.
; RUN: kiln-opt --passes=hide-sinks %s | FileCheck %s

; CHECK-NOT: @__kiln_sink

declare void @use(ptr)

; CHECK-LABEL: define i32 @loaded(
; CHECK-NEXT: %own = alloca i32
; CHECK-NEXT: %one = select i1 %c, ptr %x, ptr %own
define i32 @loaded(ptr %x, i1 %c) {
  %own = alloca i32
  %one = select i1 %c, ptr %x, ptr %own
  store i32 1, ptr %one
  %r = load i32, ptr %own
  ret i32 %r
}

; CHECK-LABEL: define void @passed(
; CHECK-NEXT: %own = alloca i32
define void @passed(ptr %x, i1 %c) {
  %own = alloca i32
  %one = select i1 %c, ptr %x, ptr %own
  store i32 1, ptr %one
  call void @use(ptr %own)
  ret void
}

; CHECK-LABEL: define void @unused(
; CHECK-NEXT: %own = alloca i32
define void @unused() {
  %own = alloca i32
  ret void
}

; CHECK-NOT: @__kiln_sink
