; All variables get their values. The border: one that the program stores to, directly or to a part of it, or that
; another module may store to, is still no constant, while one that is only read is.
; RUN: kiln-opt --passes=constant-initializers %s | FileCheck %s

; CHECK-DAG: @read = internal constant [2 x i32] [i32 0, i32 1]
; CHECK-DAG: @written = internal global i32 2
; CHECK-DAG: @partly_written = internal global [2 x i32] [i32 0, i32 3]
; CHECK-DAG: @visible = global i32 4
@read = internal global [2 x i32] zeroinitializer
@written = internal global i32 0
@partly_written = internal global [2 x i32] zeroinitializer
@visible = global i32 0
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [
  { i32, ptr, ptr } { i32 65535, ptr @initialize, ptr null }
]

define internal void @initialize() {
  store i32 1, ptr getelementptr ([2 x i32], ptr @read, i64 0, i64 1)
  store i32 2, ptr @written
  store i32 3, ptr getelementptr ([2 x i32], ptr @partly_written, i64 0, i64 1)
  store i32 4, ptr @visible
  ret void
}

; CHECK-LABEL: define i32 @body(
define i32 @body(i64 %i) {
  %a = getelementptr [2 x i32], ptr @read, i64 0, i64 %i
  %x = load i32, ptr %a
  store i32 %x, ptr @written
  %b = getelementptr [2 x i32], ptr @partly_written, i64 0, i64 %i
  store i32 %x, ptr %b
  ret i32 %x
}
