; Calls with other arguments, on two sides of a branch, and of functions that read memory or count are not the same.
; RUN: kiln-opt --function=body --passes=common-calls,inline %s | FileCheck %s

@shared = internal global float 0.0

declare i32 @next_ticket()

; CHECK-LABEL: define void @body(
; CHECK-COUNT-2: fcmp olt float %{{.*}}, 1.000000e+00
; CHECK-COUNT-2: fcmp olt float %{{.*}}, 2.000000e+00
; CHECK-COUNT-2: call i32 @next_ticket()
; CHECK-COUNT-2: fcmp olt float %{{.*}}, 1.000000e+00
; CHECK-NOT: fcmp
; CHECK: ret void
define void @body(ptr %out, float %x, float %y, float %z, i1 %c) {
entry:
  %a = call float @chosen(float %x)
  %b = call float @chosen(float %y)
  store float %a, ptr %out
  store float %b, ptr %out
  %d = call float @read()
  store float %x, ptr @shared
  %e = call float @read()
  store float %d, ptr %out
  store float %e, ptr %out
  %f = call float @of_ticket()
  %g = call float @of_ticket()
  store float %f, ptr %out
  store float %g, ptr %out
  br i1 %c, label %left, label %right
left:
  %l = call float @chosen(float %z)
  br label %end
right:
  %r = call float @chosen(float %z)
  br label %end
end:
  %m = phi float [ %l, %left ], [ %r, %right ]
  store float %m, ptr %out
  ret void
}

define internal float @chosen(float %x) {
entry:
  %small = fcmp olt float %x, 1.0
  br i1 %small, label %end, label %large
large:
  %folded = fmul float %x, 0.125
  br label %end
end:
  %r = phi float [ %x, %entry ], [ %folded, %large ]
  ret float %r
}

define internal float @read() {
entry:
  %x = load float, ptr @shared
  %small = fcmp olt float %x, 2.0
  br i1 %small, label %end, label %large
large:
  %folded = fmul float %x, 0.125
  br label %end
end:
  %r = phi float [ %x, %entry ], [ %folded, %large ]
  ret float %r
}

define internal float @of_ticket() {
entry:
  %ticket = call i32 @next_ticket()
  %odd = trunc i32 %ticket to i1
  br i1 %odd, label %end, label %even
even:
  br label %end
end:
  %r = phi float [ 1.0, %entry ], [ 2.0, %even ]
  ret float %r
}
