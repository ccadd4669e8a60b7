; Only extensions of 32 to 64 bits are truncated for free.
; RUN: kiln-opt --passes=extension-uses %s | FileCheck %s

declare void @take(...)

; CHECK-LABEL: @from_16(
; CHECK-NOT: trunc
; CHECK: ret i64 %wide
define i64 @from_16(i16 %a) {
entry:
  %index = add i16 %a, 1
  %wide = zext i16 %index to i64
  br label %one
one:
  call void (...) @take(i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index, i16 %index)
  ret i64 %wide
}

; The extension is in another block than the index.
; CHECK-LABEL: @elsewhere(
; CHECK-NOT: trunc
; CHECK: ret i64 %wide
define i64 @elsewhere(i32 %a) {
entry:
  %index = add i32 %a, 1
  br label %one
one:
  %wide = zext i32 %index to i64
  br label %two
two:
  call void (...) @take(i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index)
  ret i64 %wide
}
