; A component whose index is not constant is chosen among the components, and a write to it chooses in each of them: no
; vector must be put together in memory.
; RUN: kiln-opt --passes=components %s | FileCheck %s

; CHECK-LABEL: define float @read(
; CHECK-NOT: extractelement <2 x float> {{.*}}, i32 %i
; CHECK: icmp eq i32 %i, 1
; CHECK: select i1
; CHECK: ret float
define float @read(ptr %in, i32 %i) {
  %v = load <2 x float>, ptr %in
  %x = extractelement <2 x float> %v, i32 %i
  ret float %x
}

; CHECK-LABEL: define void @write(
; CHECK-NOT: insertelement <2 x float>
; CHECK-DAG: [[IS_0:%.*]] = icmp eq i32 %i, 0
; CHECK-DAG: [[IS_1:%.*]] = icmp eq i32 %i, 1
; CHECK-DAG: select i1 [[IS_0]], float %x,
; CHECK-DAG: select i1 [[IS_1]], float %x,
; CHECK: ret void
define void @write(ptr %p, float %x, i32 %i) {
  %v = load <2 x float>, ptr %p
  %w = insertelement <2 x float> %v, float %x, i32 %i
  store <2 x float> %w, ptr %p
  ret void
}
