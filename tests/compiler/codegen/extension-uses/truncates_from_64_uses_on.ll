; With fewer than 64 uses, of which the extension is one, the code generator is fast and the index stays.
; RUN: kiln-opt --passes=extension-uses %s | FileCheck %s

declare void @take(...)

; CHECK-LABEL: @uses_63(
; CHECK-NOT: trunc
; CHECK: call void (...) @take(i32 %index,
define i64 @uses_63(i32 %a, ptr %p, i1 %c) {
entry:
  %index = add i32 %a, 1
  %wide = zext i32 %index to i64
  br i1 %c, label %one, label %end
one:
  call void (...) @take(i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index)
  br label %end
end:
  ret i64 %wide
}

; CHECK-LABEL: @uses_64(
; CHECK: one:
; CHECK-NEXT: trunc i64 %wide to i32
define i64 @uses_64(i32 %a, ptr %p, i1 %c) {
entry:
  %index = add i32 %a, 1
  %wide = zext i32 %index to i64
  br i1 %c, label %one, label %end
one:
  call void (...) @take(i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index)
  br label %end
end:
  ret i64 %wide
}
