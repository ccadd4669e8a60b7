; A function or a constant that the root does not use is removed. A kernel may pass what C++ does not allow, such as a
; null reference, so nothing is assumed of arguments and results.
; RUN: kiln-opt --passes=inline --function=body %s | FileCheck %s

; CHECK-NOT: @unused
@unused.table = constant [2 x i32] [i32 1, i32 2]

; What another module might also define is this module's own.
; CHECK: @table = internal constant
@table = linkonce_odr constant [2 x i32] [i32 3, i32 4]

define void @unused(ptr %x) {
  store i32 1, ptr %x
  ret void
}

; CHECK: define i32 @body(ptr %x, i32 %i)
define noundef i32 @body(ptr noundef nonnull dereferenceable(4) %x, i32 noundef %i) {
  %at = getelementptr [2 x i32], ptr @table, i32 0, i32 %i
  %r = load i32, ptr %at
  ret i32 %r
}

; CHECK-NOT: @unused
