; Every call ends in the root, also of a function that says `noinline`. The other functions are gone, and the root can
; be called from outside.
; RUN: kiln-opt --passes=inline --function=body %s | FileCheck %s

; CHECK-NOT: define {{.*}}@square
; CHECK-NOT: define {{.*}}@fourth_power

define float @square(float %x) noinline optnone {
  %r = fmul float %x, %x
  ret float %r
}

define float @fourth_power(float %x) {
  %a = call float @square(float %x)
  %b = call float @square(float %a)
  ret float %b
}

; CHECK: define {{.*}}float @body(
; CHECK-NEXT: %[[A:.*]] = fmul float %x, %x
; CHECK-NEXT: %[[B:.*]] = fmul float %[[A]], %[[A]]
; CHECK-NEXT: ret float %[[B]]
define internal float @body(float %x) {
  %r = call float @fourth_power(float %x)
  ret float %r
}

; CHECK-NOT: define
