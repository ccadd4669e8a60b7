; A comparison with a number is one of integers in which NaNs are less than all numbers or greater than all, as the
; predicate asks for.
; RUN: kiln-opt --passes=half-comparisons --cpu=x86-64-v4 %s | FileCheck %s

; `x > 0.5` is false for a NaN, so NaNs are least: 0x83ff - x for what is negative, x + 0x3ff, and 0x3800 + 0x3ff.
; CHECK-LABEL: @is_more(
; CHECK: %[[BITS:.*]] = bitcast <4 x half> %x to <4 x i16>
; CHECK-DAG: %[[NEGATIVE:.*]] = icmp slt <4 x i16> %[[BITS]], zeroinitializer
; CHECK-DAG: %[[BELOW:.*]] = sub <4 x i16> <i16 -31745, i16 -31745, i16 -31745, i16 -31745>, %[[BITS]]
; CHECK-DAG: %[[ABOVE:.*]] = add <4 x i16> %[[BITS]], <i16 1023, i16 1023, i16 1023, i16 1023>
; CHECK: %[[KEY:.*]] = select <4 x i1> %[[NEGATIVE]], <4 x i16> %[[BELOW]], <4 x i16> %[[ABOVE]]
; CHECK: icmp sgt <4 x i16> %[[KEY]], <i16 15359, i16 15359, i16 15359, i16 15359>
; CHECK-NOT: fcmp
; CHECK: ret
define <4 x i1> @is_more(<4 x half> %x) {
  %more = fcmp ogt <4 x half> %x, splat (half 0xH3800)
  ret <4 x i1> %more
}

; `!(x > 0.5)` is true for a NaN: the same keys.
; CHECK-LABEL: @is_not_more(
; CHECK: add <4 x i16> %{{.*}}, <i16 1023, i16 1023, i16 1023, i16 1023>
; CHECK: icmp sle <4 x i16> %{{.*}}, <i16 15359, i16 15359, i16 15359, i16 15359>
define <4 x i1> @is_not_more(<4 x half> %x) {
  %more = fcmp ule <4 x half> %x, splat (half 0xH3800)
  ret <4 x i1> %more
}

; `0.5 > x` is false for a NaN, so NaNs are greatest: x - 0x400.
; CHECK-LABEL: @is_less(
; CHECK: add <4 x i16> %{{.*}}, <i16 -1024, i16 -1024, i16 -1024, i16 -1024>
; CHECK: icmp slt <4 x i16> %{{.*}}, <i16 13312, i16 13312, i16 13312, i16 13312>
define <4 x i1> @is_less(<4 x half> %x) {
  %less = fcmp ogt <4 x half> splat (half 0xH3800), %x
  ret <4 x i1> %less
}

; -0 is 0: both have the key 0x3ff.
; CHECK-LABEL: @is_positive(
; CHECK: icmp sgt <4 x i16> %{{.*}}, <i16 1023, i16 1023, i16 1023, i16 1023>
define <4 x i1> @is_positive(<4 x half> %x) {
  %more = fcmp ogt <4 x half> %x, splat (half 0xH8000)
  ret <4 x i1> %more
}

; CHECK-LABEL: @is_nan(
; CHECK: %[[MAGNITUDE:.*]] = and <4 x i16> %{{.*}}, <i16 32767, i16 32767, i16 32767, i16 32767>
; CHECK: icmp ugt <4 x i16> %[[MAGNITUDE]], <i16 31744, i16 31744, i16 31744, i16 31744>
define <4 x i1> @is_nan(<4 x half> %x) {
  %nan = fcmp uno <4 x half> %x, %x
  ret <4 x i1> %nan
}
