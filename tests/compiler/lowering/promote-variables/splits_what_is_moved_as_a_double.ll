; Clang passes two floats or four halves as a double. Moved so, a variable with parts becomes registers all the same.
; RUN: kiln-opt --passes=promote-variables %s | FileCheck %s

; CHECK-LABEL: define float @parts(
; CHECK-NOT: alloca
; CHECK-NOT: load
; CHECK: ret float
define float @parts(double %pair) {
  %a = alloca <2 x float>, align 8
  %b = alloca [2 x float], align 8
  store double %pair, ptr %a, align 8
  %moved = load double, ptr %a, align 8
  store double %moved, ptr %b, align 8
  %low = load float, ptr %b, align 8
  %at = getelementptr i8, ptr %b, i64 4
  %high = load float, ptr %at, align 4
  %sum = fadd float %low, %high
  ret float %sum
}

; CHECK-LABEL: define double @halves(
; CHECK-NOT: alloca
; CHECK: ret double
define double @halves(half %x) {
  %a = alloca [4 x half], align 8
  store double 0.0, ptr %a, align 8
  %at = getelementptr i8, ptr %a, i64 2
  store half %x, ptr %at, align 2
  %all = load double, ptr %a, align 8
  ret double %all
}

; Numbers of double precision stay doubles.
; CHECK-LABEL: define double @whole(
; CHECK-NOT: i64
; CHECK: ret double
define double @whole(double %x, i1 %c) {
entry:
  %a = alloca double, align 8
  store double %x, ptr %a, align 8
  br i1 %c, label %other, label %end

other:
  %twice = fadd double %x, %x
  store double %twice, ptr %a, align 8
  br label %end

end:
  %v = load double, ptr %a, align 8
  ret double %v
}
