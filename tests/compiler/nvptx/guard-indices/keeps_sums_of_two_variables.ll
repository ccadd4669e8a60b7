; Offsets that are sums of two variables are no neighbours of one of them.
; RUN: kiln-opt --passes=guard-indices %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: @two(
; CHECK: icmp ult i64 %one, 31
; CHECK: icmp ult i64 %two, 31
define i1 @two(i64 %x, i64 %i, i64 %j) {
  %base = mul i64 %x, 3
  %one = add i64 %base, %i
  %a = icmp ult i64 %one, 31
  %two = add i64 %base, %j
  %b = icmp ult i64 %two, 31
  %both = and i1 %a, %b
  ret i1 %both
}

; CHECK-LABEL: @of_an_argument(
; CHECK: icmp ult i64 %one, %end
; CHECK: icmp ult i64 %two, %end
define i1 @of_an_argument(ptr addrspace(101) %block, i64 %x, i64 %i, i64 %j) {
  %low = load i32, ptr addrspace(101) %block
  %end = zext i32 %low to i64
  %base = mul i64 %x, 3
  %one = add i64 %base, %i
  %a = icmp ult i64 %one, %end
  %two = add i64 %base, %j
  %b = icmp ult i64 %two, %end
  %both = and i1 %a, %b
  ret i1 %both
}
