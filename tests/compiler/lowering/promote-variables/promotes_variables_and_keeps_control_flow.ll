; Variables become values, of structures and arrays the parts that are accessed. The blocks stay as they are: positions
; in the program are read from them.
; RUN: kiln-opt --passes=promote-variables %s | FileCheck %s

; CHECK-LABEL: define i32 @branch(
; CHECK-NOT: {{alloca|load|store}}
; CHECK: br i1 %c, label %then, label %end
; CHECK: then:
; CHECK: br label %end
; CHECK: end:
; CHECK: [[V:%.*]] = phi i32 {{\[ %x, %entry \], \[ %y, %then \]|\[ %y, %then \], \[ %x, %entry \]}}
; CHECK: ret i32 [[V]]
define i32 @branch(i32 %x, i32 %y, i1 %c) {
entry:
  %v = alloca i32
  store i32 %x, ptr %v
  br i1 %c, label %then, label %end

then:
  store i32 %y, ptr %v
  br label %end

end:
  %r = load i32, ptr %v
  ret i32 %r
}

; CHECK-LABEL: define float @parts(
; CHECK-NOT: alloca
; CHECK: %s = fadd float %x, %y
; CHECK: ret float %s
define float @parts(float %x, float %y) {
  %v = alloca [2 x float]
  store float %x, ptr %v
  %b = getelementptr inbounds [2 x float], ptr %v, i64 0, i64 1
  store float %y, ptr %b
  %p = load float, ptr %v
  %q = load float, ptr %b
  %s = fadd float %p, %q
  ret float %s
}
