; Arithmetic, loads and stores of the kernel's own vectors become those of their components; of an alignment each
; component keeps what its place has.
; RUN: kiln-opt --passes=components %s | FileCheck %s

; CHECK-LABEL: define void @f(
; CHECK-NOT: {{(load|fadd|store) <2 x float>}}
; CHECK-DAG: [[X0:%.*]] = load float, ptr %in, align 8
; CHECK-DAG: [[X1:%.*]] = load float, ptr {{.*}}, align 4
; CHECK-DAG: [[Y0:%.*]] = fadd float [[X0]], 1.000000e+00
; CHECK-DAG: [[Y1:%.*]] = fadd float [[X1]], 2.000000e+00
; CHECK-DAG: store float [[Y0]], ptr %out, align 8
; CHECK-DAG: store float [[Y1]], ptr {{.*}}, align 4
; CHECK-NOT: <2 x float>
; CHECK: ret void
define void @f(ptr %in, ptr %out) {
  %x = load <2 x float>, ptr %in, align 8
  %y = fadd <2 x float> %x, <float 1.0, float 2.0>
  store <2 x float> %y, ptr %out, align 8
  ret void
}
