; Short arithmetic moves before the load; of a long computation the load would have to wait for the end. The border: 16
; instructions move, 17 do not.
; RUN: kiln-opt --passes=masked-loads %s | FileCheck %s

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer, align 64

; CHECK-LABEL: define i32 @sixteen(
; CHECK: and i1
; CHECK: %x = load i32
; CHECK-NOT: select
; CHECK: ret i32 %x
define i32 @sixteen(ptr %a, i1 %inside, i32 %v0) {
  %p = select i1 %inside, ptr %a, ptr @__kiln_zeros.64
  %x = load i32, ptr %p
  %v1 = mul i32 %v0, 3
  %v2 = xor i32 %v1, 3
  %v3 = mul i32 %v2, 3
  %v4 = xor i32 %v3, 3
  %v5 = mul i32 %v4, 3
  %v6 = xor i32 %v5, 3
  %v7 = mul i32 %v6, 3
  %v8 = xor i32 %v7, 3
  %v9 = mul i32 %v8, 3
  %v10 = xor i32 %v9, 3
  %v11 = mul i32 %v10, 3
  %v12 = xor i32 %v11, 3
  %v13 = mul i32 %v12, 3
  %v14 = xor i32 %v13, 3
  %v15 = mul i32 %v14, 3
  %mask = icmp slt i32 %v15, 9
  %m = select i1 %mask, i32 %x, i32 0
  ret i32 %m
}

; CHECK-LABEL: define i32 @seventeen(
; CHECK: %p = select i1 %inside, ptr %a, ptr @__kiln_zeros.64
; CHECK-NEXT: %x = load i32
; CHECK: %m = select i1 %mask, i32 %x, i32 0
; CHECK: ret i32 %m
define i32 @seventeen(ptr %a, i1 %inside, i32 %v0) {
  %p = select i1 %inside, ptr %a, ptr @__kiln_zeros.64
  %x = load i32, ptr %p
  %v1 = mul i32 %v0, 3
  %v2 = xor i32 %v1, 3
  %v3 = mul i32 %v2, 3
  %v4 = xor i32 %v3, 3
  %v5 = mul i32 %v4, 3
  %v6 = xor i32 %v5, 3
  %v7 = mul i32 %v6, 3
  %v8 = xor i32 %v7, 3
  %v9 = mul i32 %v8, 3
  %v10 = xor i32 %v9, 3
  %v11 = mul i32 %v10, 3
  %v12 = xor i32 %v11, 3
  %v13 = mul i32 %v12, 3
  %v14 = xor i32 %v13, 3
  %v15 = mul i32 %v14, 3
  %v16 = xor i32 %v15, 3
  %mask = icmp slt i32 %v16, 9
  %m = select i1 %mask, i32 %x, i32 0
  ret i32 %m
}
