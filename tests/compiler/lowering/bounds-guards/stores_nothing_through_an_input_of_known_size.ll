; That a store is inside of an input does not allow it.
; RUN: kiln-opt --passes=bounds-guards --grid=16,1,1 --parameters=in:4:64,out:4:64 %s | FileCheck %s

; CHECK-LABEL: define void @body(
; CHECK: [[NEVER:%.*]] = icmp ult i64 {{.*}}, 0
; CHECK: [[TARGET:%.*]] = select i1 [[NEVER]], ptr %a,
; CHECK: store float 1.000000e+00, ptr [[TARGET]]
; CHECK: store float 2.000000e+00, ptr %b
define void @body(ptr %x, i64 %x.first, i64 %x.end, ptr %y, i64 %y.first, i64 %y.end, ptr %thread) {
  %a = getelementptr float, ptr %x, i64 3
  store float 1.0, ptr %a
  %b = getelementptr float, ptr %y, i64 15
  store float 2.0, ptr %b
  ret void
}
