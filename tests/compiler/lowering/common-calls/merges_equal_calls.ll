; Two functions reduce one angle with a branch: once is enough. Their own calls are merged when they have been inlined.
; RUN: kiln-opt --function=body --passes=common-calls,inline %s | FileCheck %s

; CHECK-LABEL: define void @body(
; CHECK: fcmp olt float %{{.*}}, 1.000000e+05
; CHECK-NOT: fcmp olt
; CHECK: ret void
define void @body(ptr %out, float %x) {
  %s = call float @sine(float %x)
  %c = call float @cosine(float %x)
  %again = call float @sine(float %x)
  store float %s, ptr %out
  %next = getelementptr float, ptr %out, i64 1
  store float %c, ptr %next
  %last = getelementptr float, ptr %out, i64 2
  store float %again, ptr %last
  ret void
}

define internal float @sine(float %x) {
  %magnitude = call float @llvm.fabs.f32(float %x)
  %r = call float @reduced(float %magnitude)
  ret float %r
}

define internal float @cosine(float %x) {
  %magnitude = call float @llvm.fabs.f32(float %x)
  %r = call float @reduced(float %magnitude)
  %turned = fadd float %r, 1.0
  ret float %turned
}

define internal float @reduced(float %x) {
entry:
  %small = fcmp olt float %x, 1.0e5
  br i1 %small, label %end, label %large
large:
  %folded = fmul float %x, 0.125
  br label %end
end:
  %r = phi float [ %x, %entry ], [ %folded, %large ]
  ret float %r
}

declare float @llvm.fabs.f32(float)
