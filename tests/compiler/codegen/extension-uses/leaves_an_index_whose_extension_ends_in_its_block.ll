; The extension is not live out of its block, so no register would be saved: truncations would only keep it alive.
; RUN: kiln-opt --passes=extension-uses %s | FileCheck %s

declare void @take(...)

; CHECK-LABEL: @local(
; CHECK-NOT: trunc
; CHECK: ret i64 0
define i64 @local(i32 %a, ptr %p) {
entry:
  %index = add i32 %a, 1
  %wide = zext i32 %index to i64
  %address = getelementptr float, ptr %p, i64 %wide
  store float 1.0, ptr %address
  br label %one
one:
  call void (...) @take(i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index)
  ret i64 0
}
