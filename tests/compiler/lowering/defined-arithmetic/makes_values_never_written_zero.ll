; Undefined and poison values become zero where they are read. The vector that an insertion starts from is not read, so
; it stays, and with it the way that LLVM recognizes vectors that are built up.
; RUN: kiln-opt --passes=defined-arithmetic %s | FileCheck %s

; CHECK-LABEL: define i32 @reads(
; CHECK: store float 0.000000e+00, ptr %p
; CHECK: %s = add i32 %x, 0
; CHECK: %m = phi i32 [ %s, %entry ], [ 0, %other ]
define i32 @reads(ptr %p, i32 %x, i1 %c) {
entry:
  store float undef, ptr %p
  %s = add i32 %x, poison
  br i1 %c, label %end, label %other

other:
  br label %end

end:
  %m = phi i32 [ %s, %entry ], [ undef, %other ]
  ret i32 %m
}

; CHECK-LABEL: define <2 x float> @result(
; CHECK-NEXT: ret <2 x float> zeroinitializer
define <2 x float> @result() {
  ret <2 x float> poison
}

; CHECK-LABEL: define <2 x float> @built_up(
; CHECK: %a = insertelement <2 x float> poison, float %x, i64 0
define <2 x float> @built_up(float %x) {
  %a = insertelement <2 x float> poison, float %x, i64 0
  %b = insertelement <2 x float> %a, float %x, i64 1
  ret <2 x float> %b
}
