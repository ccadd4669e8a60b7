; Flags that promise the absence of overflow are dropped, as are those of addresses and metadata that promise a range:
; no later pass may conclude anything from them. Flags of floating point are the math mode's and stay.
; RUN: kiln-opt --passes=defined-arithmetic %s | FileCheck %s

; CHECK-LABEL: define i32 @integers(
; CHECK: %a = add i32 %x, %y
; CHECK: %b = mul i32 %a, %y
; CHECK: %c = or i32 %b, %x
; CHECK: %d = trunc i64 %z to i32
; CHECK: %e = zext i32 %d to i64
define i32 @integers(i32 %x, i32 %y, i64 %z) {
  %a = add nsw i32 %x, %y
  %b = mul nuw nsw i32 %a, %y
  %c = or disjoint i32 %b, %x
  %d = trunc nuw i64 %z to i32
  %e = zext nneg i32 %d to i64
  %f = trunc i64 %e to i32
  %g = xor i32 %c, %f
  ret i32 %g
}

; CHECK-LABEL: define i32 @address(
; CHECK: %p = getelementptr i32, ptr %base, i64 %i
; CHECK: %v = load i32, ptr %p, align 4
; CHECK-NOT: !range
define i32 @address(ptr %base, i64 %i) {
  %p = getelementptr inbounds i32, ptr %base, i64 %i
  %v = load i32, ptr %p, align 4, !range !0
  ret i32 %v
}

; CHECK-LABEL: define float @floats(
; CHECK: %s = fadd nnan contract float %x, %y
define float @floats(float %x, float %y) {
  %s = fadd nnan contract float %x, %y
  ret float %s
}

!0 = !{i32 0, i32 2}
