; The select of a larger half moves 16 bits: of halves, LLVM's code generator would make a maximum of it, for which x86
; calls a function. The comparison stays one of halves.
; RUN: kiln-opt --passes=half-selects %s | FileCheck %s

; CHECK-LABEL: define half @larger(
; CHECK: %c = fcmp ogt half %x, %y
; CHECK-DAG: [[X:%.*]] = bitcast half %x to i16
; CHECK-DAG: [[Y:%.*]] = bitcast half %y to i16
; CHECK: [[BITS:%.*]] = select i1 %c, i16 [[X]], i16 [[Y]]
; CHECK: [[RESULT:%.*]] = bitcast i16 [[BITS]] to half
; CHECK: ret half [[RESULT]]
define half @larger(half %x, half %y) {
  %c = fcmp ogt half %x, %y
  %m = select i1 %c, half %x, half %y
  ret half %m
}

; CHECK-LABEL: define <8 x half> @lanes(
; CHECK: [[BITS:%.*]] = select <8 x i1> %c, <8 x i16> {{.*}}, <8 x i16> {{.*}}
; CHECK: bitcast <8 x i16> [[BITS]] to <8 x half>
define <8 x half> @lanes(<8 x half> %x, <8 x half> %y) {
  %c = fcmp olt <8 x half> %x, %y
  %m = select <8 x i1> %c, <8 x half> %x, <8 x half> %y
  ret <8 x half> %m
}
