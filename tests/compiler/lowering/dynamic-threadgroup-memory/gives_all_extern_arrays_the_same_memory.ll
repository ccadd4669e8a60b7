; All `extern __shared__` arrays of CUDA begin at the same address, whatever their types, in memory of the launch's
; size.
; RUN: kiln-opt --passes=dynamic-threadgroup-memory --threadgroup-bytes=1024 %s | FileCheck %s

; CHECK-NOT: @floats
; CHECK-NOT: @bytes
; CHECK: @[[MEMORY:__kiln_dynamic_memory]] = internal global [1024 x i8] undef, section "kiln.threadgroup", align 128
@floats = external global [0 x float], section "kiln.threadgroup"
@bytes = external global [0 x i8], section "kiln.threadgroup", align 16

; CHECK-LABEL: define void @body(
; CHECK-NEXT: store float 1.000000e+00, ptr @[[MEMORY]]
; CHECK-NEXT: store i8 2, ptr getelementptr (i8, ptr @[[MEMORY]], i64 4)
define void @body() {
  store float 1.0, ptr @floats
  store i8 2, ptr getelementptr (i8, ptr @bytes, i64 4)
  ret void
}
