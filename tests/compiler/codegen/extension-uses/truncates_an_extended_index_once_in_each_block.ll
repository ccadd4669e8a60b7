; An index with 65 uses is used in blocks into which its extension is live, too. Each of the blocks gets one truncation
; of the extension, so that one register holds both. Zero and sign extensions alike.
; RUN: kiln-opt --passes=extension-uses %s | FileCheck %s

declare void @take(...)

; CHECK-LABEL: @zero(
; CHECK: %wide = zext i32 %index to i64
; CHECK: one:
; CHECK-NEXT: %[[ONE:.*]] = trunc i64 %wide to i32
; CHECK-NEXT: call void (...) @take(i32 %[[ONE]], i32 %[[ONE]],
; CHECK-NOT: %index
; CHECK: end:
; CHECK-NEXT: %[[END:.*]] = trunc i64 %wide to i32
; CHECK-NEXT: call void (...) @take(i32 %[[END]], i32 %[[END]],
; CHECK-NOT: {{%index|trunc}}
; CHECK: ret i64 %wide
define i64 @zero(i32 %a, ptr %p, i1 %c) {
entry:
  %index = add i32 %a, 1
  %wide = zext i32 %index to i64
  br i1 %c, label %one, label %end
one:
  call void (...) @take(i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index)
  br label %end
end:
  call void (...) @take(i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index)
  ret i64 %wide
}

; CHECK-LABEL: @sign(
; CHECK: %wide = sext i32 %index to i64
; CHECK: one:
; CHECK-NEXT: %[[ONE:.*]] = trunc i64 %wide to i32
; CHECK: end:
; CHECK-NEXT: %[[END:.*]] = trunc i64 %wide to i32
; CHECK: ret i64 %wide
define i64 @sign(i32 %a, ptr %p, i1 %c) {
entry:
  %index = add i32 %a, 1
  %wide = sext i32 %index to i64
  br i1 %c, label %one, label %end
one:
  call void (...) @take(i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index)
  br label %end
end:
  call void (...) @take(i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index, i32 %index)
  ret i64 %wide
}
