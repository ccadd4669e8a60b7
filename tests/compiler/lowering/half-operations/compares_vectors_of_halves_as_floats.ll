; Processors without arithmetic of halves compare vectors of floats.
; RUN: kiln-opt --passes=half-operations %s | FileCheck %s

; CHECK-LABEL: define <8 x i1> @lanes(
; CHECK-DAG: %[[X:.*]] = fpext <8 x half> %x to <8 x float>
; CHECK-DAG: %[[Y:.*]] = fpext <8 x half> %y to <8 x float>
; CHECK: fcmp ult <8 x float> %[[X]], %[[Y]]
define <8 x i1> @lanes(<8 x half> %x, <8 x half> %y) {
  %c = fcmp ult <8 x half> %x, %y
  ret <8 x i1> %c
}
