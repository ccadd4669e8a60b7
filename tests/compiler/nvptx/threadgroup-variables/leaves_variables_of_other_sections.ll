; The section says what is threadgroup memory. Constants and a kernel's other variables stay where they are.
; RUN: kiln-opt --passes=threadgroup-variables %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-DAG: @table = internal constant [2 x float] [float 1.000000e+00, float 2.000000e+00]
; CHECK-DAG: @other = internal global i32 undef, section "kiln.other"
; CHECK-DAG: @shared = internal addrspace(3) global i32 undef
; CHECK-NOT: __kiln_shared
@table = internal constant [2 x float] [float 1.0, float 2.0]
@other = internal global i32 undef, section "kiln.other"
@shared = internal addrspace(3) global i32 undef

define float @reads() {
  %value = load float, ptr @table
  ret float %value
}
