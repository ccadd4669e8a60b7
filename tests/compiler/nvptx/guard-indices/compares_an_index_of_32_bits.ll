; `index * 4 + constant < end` in 64 bits becomes `index < limit` in 32. A signed index may have a limit of 2^31 at most;
; of an unsigned one the largest is in bounds where the array has 2^32 elements. An array below 2 GiB needs neither.
; RUN: kiln-opt --passes=guard-indices %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: @signed(
; CHECK: %[[UP:.*]] = add i64 %end, 3
; CHECK: %[[ALL:.*]] = lshr i64 %[[UP]], 2
; CHECK: %[[LEAST:.*]] = call i64 @llvm.umin.i64(i64 %[[ALL]], i64 2147483648)
; CHECK: %[[LIMIT:.*]] = trunc i64 %[[LEAST]] to i32
; CHECK: %[[IN:.*]] = icmp ult i32 %i, %[[LIMIT]]
; CHECK: ret i1 %[[IN]]
define i1 @signed(ptr addrspace(101) %block, i32 %i) {
  %end = load i64, ptr addrspace(101) %block
  %wide = sext i32 %i to i64
  %offset = shl nsw i64 %wide, 2
  %inside = icmp ult i64 %offset, %end
  ret i1 %inside
}

; CHECK-LABEL: @unsigned(
; CHECK: %[[BEYOND:.*]] = icmp ugt i64 %{{.*}}, 4294967295
; CHECK: %[[IN:.*]] = icmp ult i32 %i,
; CHECK: or i1 %[[IN]], %[[BEYOND]]
define i1 @unsigned(ptr addrspace(101) %block, i32 %i) {
  %end = load i64, ptr addrspace(101) %block
  %wide = zext i32 %i to i64
  %offset = shl nuw nsw i64 %wide, 2
  %inside = icmp ugt i64 %end, %offset
  ret i1 %inside
}

; CHECK-LABEL: @short(
; CHECK-NOT: umin
; CHECK: icmp ult i32 %i,
; CHECK-NOT: or
define i1 @short(ptr addrspace(101) %block, i32 %i) {
  %low = load i32, ptr addrspace(101) %block
  %end = zext i32 %low to i64
  %wide = zext i32 %i to i64
  %offset = shl nuw nsw i64 %wide, 2
  %inside = icmp ult i64 %offset, %end
  ret i1 %inside
}

; A negative index with a constant that is larger than an element may be in bounds: it stays.
; CHECK-LABEL: @distant(
; CHECK: icmp ult i64
define i1 @distant(ptr addrspace(101) %block, i32 %i) {
  %end = load i64, ptr addrspace(101) %block
  %wide = sext i32 %i to i64
  %scaled = shl nsw i64 %wide, 2
  %offset = add i64 %scaled, 8
  %inside = icmp ult i64 %offset, %end
  ret i1 %inside
}

; The bytes of a variable are a constant.
; CHECK-LABEL: @variable(
; CHECK: icmp ult i32 %i, 25
define i1 @variable(i32 %i) {
  %wide = sext i32 %i to i64
  %offset = shl nsw i64 %wide, 2
  %inside = icmp ult i64 %offset, 97
  ret i1 %inside
}

; An offset from the position in a threadgroup fits into 32 bits.
; CHECK-LABEL: @position(
; CHECK: icmp ult i32 %{{.*}}, 1533
define i1 @position(i32 range(i32 0, 1024) %x, i32 range(i32 0, 1024) %y) {
  %a = zext nneg i32 %y to i64
  %b = mul nuw nsw i64 %a, 96
  %c = zext nneg i32 %x to i64
  %d = shl nuw nsw i64 %c, 2
  %e = add nuw nsw i64 %b, %d
  %offset = add nsw i64 %e, -4
  %inside = icmp ult i64 %offset, 1533
  ret i1 %inside
}
