; A select of other memory is no guard, a load from a sink is not one of zeros, and volatile accesses, atomics and types
; that PTX cannot move in one instruction keep their select of addresses.
; RUN: kiln-opt --passes=predicated-accesses %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer, align 64
@__kiln_sink = external global [64 x i8], align 16
@zeros = internal constant [64 x i8] zeroinitializer, align 64

; CHECK-NOT: asm
; CHECK-LABEL: @other_memory(
; CHECK: load float, ptr %guarded
define float @other_memory(ptr %p, i1 %inside) {
  %guarded = select i1 %inside, ptr %p, ptr @zeros
  %value = load float, ptr %guarded, align 4
  ret float %value
}

; CHECK-LABEL: @from_sink(
; CHECK: load float, ptr %guarded
define float @from_sink(ptr %p, i1 %inside) {
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_sink
  %value = load float, ptr %guarded, align 4
  ret float %value
}

; CHECK-LABEL: @to_zeros(
; CHECK: store float %value, ptr %guarded
define void @to_zeros(ptr %p, i1 %inside, float %value) {
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_zeros.64
  store float %value, ptr %guarded, align 4
  ret void
}

; CHECK-LABEL: @volatile(
; CHECK: load volatile float, ptr %guarded
define float @volatile(ptr %p, i1 %inside) {
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_zeros.64
  %value = load volatile float, ptr %guarded, align 4
  ret float %value
}

; CHECK-LABEL: @bit(
; CHECK: load i1, ptr %guarded
define i1 @bit(ptr %p, i1 %inside) {
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_zeros.64
  %value = load i1, ptr %guarded, align 1
  ret i1 %value
}

; CHECK-LABEL: @three_bytes(
; CHECK: load i24, ptr %guarded
define i24 @three_bytes(ptr %p, i1 %inside) {
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_zeros.64
  %value = load i24, ptr %guarded, align 4
  ret i24 %value
}

; CHECK-LABEL: @atomic(
; CHECK: load atomic i32, ptr %guarded
define i32 @atomic(ptr %p, i1 %inside) {
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_zeros.64
  %value = load atomic i32, ptr %guarded monotonic, align 4
  ret i32 %value
}

; The zeros are where the address should be.
; CHECK-LABEL: @swapped(
; CHECK: load float, ptr %guarded
define float @swapped(ptr %p, i1 %outside) {
  %guarded = select i1 %outside, ptr @__kiln_zeros.64, ptr %p
  %value = load float, ptr %guarded, align 4
  ret float %value
}
