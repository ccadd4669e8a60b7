; A body may cast a pointer to `float4*`, but an array is aligned like its elements. So no access claims more than its
; argument's alignment; one that claims less keeps it.
; RUN: kiln-opt --passes=describe-accesses --parameters=in:4,out:2 %s | FileCheck %s

; CHECK-LABEL: define void @body(
; CHECK: %a = load <4 x float>, ptr %x, align 4,
; CHECK: %b = load float, ptr %x, align 1,
; CHECK: store <4 x float> %a, ptr %y, align 2
; CHECK: store i8 1, ptr %y, align 1
; CHECK: call void @llvm.memcpy.p0.p0.i64(ptr align 2 %y, ptr align 4 %x, i64 32, i1 false)
define void @body(ptr %x, i64 %x.first, i64 %x.end, ptr %y, i64 %y.first, i64 %y.end, ptr %thread) {
  %a = load <4 x float>, ptr %x, align 16
  %b = load float, ptr %x, align 1
  store <4 x float> %a, ptr %y, align 16
  store i8 1, ptr %y, align 1
  call void @llvm.memcpy.p0.p0.i64(ptr align 16 %y, ptr align 16 %x, i64 32, i1 false)
  ret void
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
