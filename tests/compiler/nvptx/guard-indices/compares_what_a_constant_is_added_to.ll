; Accesses of a tile at constant distances compare one base: `base + c < limit` is `base < limit - c`, rounded up to what
; the base is a multiple of. A sum that may wrap stays.
; RUN: kiln-opt --passes=guard-indices %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: @row(
; CHECK-DAG: icmp ult i32 %first, 512
; CHECK-DAG: icmp ult i32 %first, 512
; CHECK-DAG: icmp ult i32 %first, 512
define i1 @row(i32 %i) {
  %small = and i32 %i, 127
  %first = shl i32 %small, 3
  %one = or disjoint i32 %first, 1
  %two = or i32 6, %first
  %a = icmp ult i32 %first, 512
  %b = icmp ult i32 %one, 512
  %c = icmp ult i32 %two, 512
  %d = and i1 %a, %b
  %e = and i1 %d, %c
  ret i1 %e
}

; The limit need not be a multiple: 505 and 511 are not below 505.
; CHECK-LABEL: @odd_limit(
; CHECK: icmp ult i32 %first, 504
define i1 @odd_limit(i32 %i) {
  %small = and i32 %i, 127
  %first = shl i32 %small, 3
  %one = or disjoint i32 %first, 1
  %a = icmp ult i32 %one, 505
  ret i1 %a
}

; CHECK-LABEL: @always(
; CHECK: ret i1 true
define i1 @always(i32 %i) {
  %small = and i32 %i, 31
  %sum = add i32 %small, 32
  %a = icmp ult i32 %sum, 64
  ret i1 %a
}

; CHECK-LABEL: @may_wrap(
; CHECK: icmp ult i32 %sum, 64
define i1 @may_wrap(i32 %i) {
  %sum = add i32 %i, 32
  %a = icmp ult i32 %sum, 64
  ret i1 %a
}
