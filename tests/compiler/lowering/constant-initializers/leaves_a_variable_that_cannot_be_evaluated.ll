; What a function computes from something that is not known here is not evaluated, and its variable stays as it was.
; Others in the list are evaluated all the same.
; RUN: kiln-opt --passes=constant-initializers %s | FileCheck %s

; CHECK-NOT: @llvm.global_ctors
; CHECK-DAG: @unknown = internal global i32 0
; CHECK-DAG: @known = internal constant i32 5
@unknown = internal global i32 0
@known = internal global i32 0
@llvm.global_ctors = appending global [2 x { i32, ptr, ptr }] [
  { i32, ptr, ptr } { i32 65535, ptr @first, ptr null }, { i32, ptr, ptr } { i32 65535, ptr @second, ptr null }
]

declare i32 @elsewhere()

define internal void @first() {
  %x = call i32 @elsewhere()
  store i32 %x, ptr @unknown
  ret void
}

define internal void @second() {
  store i32 5, ptr @known
  ret void
}

; CHECK-LABEL: define i32 @body(
define i32 @body() {
  %x = load i32, ptr @unknown
  %y = load i32, ptr @known
  %s = add i32 %x, %y
  ret i32 %s
}
