; A store or a phi in another block would need the truncation just before it, as the code generator has it too: then all
; uses of the index stay.
; RUN: kiln-opt --passes=extension-uses %s | FileCheck %s

declare void @take(...)

; CHECK-LABEL: @stored(
; CHECK-NOT: trunc
; CHECK: store i32 %index, ptr %p
define i64 @stored(i32 %a, ptr %p, i1 %c) {
entry:
  %index = add i32 %a, 1
  %wide = zext i32 %index to i64
  br i1 %c, label %one, label %end
one:
  call void (...) @take(i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index)
  br label %end
end:
  store i32 %index, ptr %p
  ret i64 %wide
}

; CHECK-LABEL: @merged(
; CHECK-NOT: trunc
; CHECK: phi i32 [ %index, %one ]
define i64 @merged(i32 %a, ptr %p, i1 %c) {
entry:
  %index = add i32 %a, 1
  %wide = zext i32 %index to i64
  br i1 %c, label %one, label %end
one:
  call void (...) @take(i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index)
  br label %end
end:
  %m = phi i32 [ %index, %one ], [ 0, %entry ]
  store i32 %m, ptr %p
  ret i64 %wide
}

; A store in the index's own block needs nothing.
; CHECK-LABEL: @stored_at_once(
; CHECK: store i32 %index, ptr %p
; CHECK: one:
; CHECK-NEXT: trunc i64 %wide to i32
define i64 @stored_at_once(i32 %a, ptr %p) {
entry:
  %index = add i32 %a, 1
  %wide = zext i32 %index to i64
  store i32 %index, ptr %p
  br label %one
one:
  call void (...) @take(i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index)
  ret i64 %wide
}
