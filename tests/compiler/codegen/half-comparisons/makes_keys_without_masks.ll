; Where masks have no registers of their own, a key is made by arithmetic: (x ^ sign) + 0x3ff + (sign & 0x8001).
; RUN: kiln-opt --passes=half-comparisons --cpu=x86-64-v3 %s | FileCheck %s

; CHECK-LABEL: @is_more(
; CHECK: %[[SIGN:.*]] = ashr <4 x i16> %[[BITS:.*]], <i16 15, i16 15, i16 15, i16 15>
; CHECK: %[[XOR:.*]] = xor <4 x i16> %[[BITS]], %[[SIGN]]
; CHECK: %[[SUM:.*]] = add <4 x i16> %[[XOR]], <i16 1023, i16 1023, i16 1023, i16 1023>
; CHECK: %[[MORE:.*]] = and <4 x i16> %[[SIGN]], <i16 -32767, i16 -32767, i16 -32767, i16 -32767>
; CHECK: %[[KEY:.*]] = add <4 x i16> %[[SUM]], %[[MORE]]
; CHECK: icmp sgt <4 x i16> %[[KEY]], <i16 15359, i16 15359, i16 15359, i16 15359>
define <4 x i1> @is_more(<4 x half> %x) {
  %more = fcmp ogt <4 x half> %x, splat (half 0xH3800)
  ret <4 x i1> %more
}
