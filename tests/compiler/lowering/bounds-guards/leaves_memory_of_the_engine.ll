; Arguments that follow those of the parameters, and constants of the device library, are Kiln's own and not guarded; a
; constant table of the kernel is guarded like an input.
; RUN: kiln-opt --passes=bounds-guards --parameters=in:4,out:4 %s | FileCheck %s

@_ZN6__kiln5sinesE = internal constant [4 x float] zeroinitializer
@table = internal constant [4 x float] [float 1.0, float 2.0, float 3.0, float 4.0]

; CHECK-LABEL: define float @own(
; CHECK-NOT: icmp
; CHECK: %x = load float, ptr %a
; CHECK: %y = load float, ptr %b
; CHECK: store float %y, ptr %thread
define float @own(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out,
             i64 %out_first, i64 %out_bytes, ptr %thread, i64 %i) {
  %a = getelementptr float, ptr %thread, i64 %i
  %x = load float, ptr %a
  %b = getelementptr [4 x float], ptr @_ZN6__kiln5sinesE, i64 0, i64 %i
  %y = load float, ptr %b
  store float %y, ptr %thread
  ret float %x
}

; 16 bytes have 13 places for a float.
; CHECK-LABEL: define float @constant_table(
; CHECK: [[IS_IN:%.*]] = icmp ult i64 {{.*}}, 13
; CHECK: [[SOURCE:%.*]] = select i1 [[IS_IN]], ptr %a, ptr @__kiln_zeros
; CHECK: %x = load float, ptr [[SOURCE]]
define float @constant_table(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out,
             i64 %out_first, i64 %out_bytes, ptr %thread, i64 %i) {
  %a = getelementptr [4 x float], ptr @table, i64 0, i64 %i
  %x = load float, ptr %a
  ret float %x
}
