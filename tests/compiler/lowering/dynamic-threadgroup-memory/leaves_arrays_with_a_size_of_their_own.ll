; An array that is defined has its own memory, and a declaration in another section is no threadgroup memory. Without
; `extern __shared__` arrays there is no dynamic memory, even if the launch asks for some.
; RUN: kiln-opt --passes=dynamic-threadgroup-memory --threadgroup-bytes=1024 %s | FileCheck %s

; CHECK-NOT: @__kiln_dynamic_memory
; CHECK: @tile = internal global [64 x float] undef, section "kiln.threadgroup"
; CHECK: @elsewhere = external global [0 x float]{{$}}
@tile = internal global [64 x float] undef, section "kiln.threadgroup"
@elsewhere = external global [0 x float]

; CHECK: store float 1.000000e+00, ptr @tile
; CHECK: store float 2.000000e+00, ptr @elsewhere
define void @body() {
  store float 1.0, ptr @tile
  store float 2.0, ptr @elsewhere
  ret void
}
; CHECK-NOT: @__kiln_dynamic_memory
