; Doubles, halves, bytes, pointers and vectors of up to 16 bytes are one instruction each.
; RUN: kiln-opt --passes=predicated-accesses %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer, align 64
@__kiln_sink = external global [64 x i8], align 16
@zeros = internal constant [64 x i8] zeroinitializer, align 64

; CHECK-LABEL: @double(
; CHECK: ld.b64 $0, [$2]; {{.*}} "=&d,b,l
define double @double(ptr %p, i1 %inside) {
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_zeros.64
  %value = load double, ptr %guarded, align 8
  ret double %value
}

; CHECK-LABEL: @half(
; CHECK: %[[WORD:.*]] = call i32 asm {{.*}} ld.u16 $0, [$2]; {{.*}} "=&r,b,l
; CHECK: %[[BITS:.*]] = trunc i32 %[[WORD]] to i16
; CHECK: bitcast i16 %[[BITS]] to half
define half @half(ptr %p, i1 %inside) {
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_zeros.64
  %value = load half, ptr %guarded, align 2
  ret half %value
}

; CHECK-LABEL: @byte(
; CHECK: %[[WORD:.*]] = call i32 asm {{.*}} ld.u8 $0, [$2]; {{.*}} "=&r,b,l
; CHECK: trunc i32 %[[WORD]] to i8
define i8 @byte(ptr %p, i1 %inside) {
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_zeros.64
  %value = load i8, ptr %guarded, align 1
  ret i8 %value
}

; CHECK-LABEL: @pointer(
; CHECK: %[[BITS:.*]] = call i64 asm {{.*}} ld.b64 $0, [$2];
; CHECK: inttoptr i64 %[[BITS]] to ptr
define ptr @pointer(ptr %p, i1 %inside) {
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_zeros.64
  %value = load ptr, ptr %guarded, align 8
  ret ptr %value
}

; CHECK-LABEL: @float4(
; CHECK: mov.b32 $0, 0; mov.b32 $1, 0; mov.b32 $2, 0; mov.b32 $3, 0; @$4 ld.v4.b32 {{[{]}}$0, $1, $2, $3}, [$5];
define <4 x float> @float4(ptr %p, i1 %inside) {
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_zeros.64
  %value = load <4 x float>, ptr %guarded, align 16
  ret <4 x float> %value
}

; CHECK-LABEL: @half4(
; CHECK: ld.v2.b32 {{[{]}}$0, $1}, [$3];
define <4 x half> @half4(ptr %p, i1 %inside) {
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_zeros.64
  %value = load <4 x half>, ptr %guarded, align 8
  ret <4 x half> %value
}

; CHECK-LABEL: @store_byte(
; CHECK: %[[WORD:.*]] = zext i8 %value to i32
; CHECK: st.u8 [$1], $2;{{.*}} i32 %[[WORD]])
define void @store_byte(ptr %p, i1 %inside, i8 %value) {
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_sink
  store i8 %value, ptr %guarded, align 1
  ret void
}

; CHECK-LABEL: @store_float4(
; CHECK: st.v4.b32 [$1], {{[{]}}$2, $3, $4, $5};
define void @store_float4(ptr %p, i1 %inside, <4 x float> %value) {
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_sink
  store <4 x float> %value, ptr %guarded, align 16
  ret void
}
