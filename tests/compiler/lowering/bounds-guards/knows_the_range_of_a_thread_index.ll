; A threadgroup has at most 1024 threads, and a threadgroup array with an element for each of them needs no guard at a
; thread's own index. An array of one element less does, unless the code is made for threadgroups of fewer threads.
; RUN: kiln-opt --passes=bounds-guards %s | FileCheck %s --check-prefixes=CHECK,ANY
; RUN: kiln-opt --passes=bounds-guards --simdgroups=8 %s | FileCheck %s --check-prefixes=CHECK,EIGHT

@enough = internal global [1024 x float] undef, section "kiln.threadgroup", align 16
@too_few = internal global [1023 x float] undef, section "kiln.threadgroup", align 16

declare i32 @__kiln_value(i32)

; CHECK-LABEL: define void @store_each(
; CHECK: store float 1.000000e+00, ptr %a
; CHECK: %b = getelementptr
; ANY: [[TARGET:%.*]] = select i1 {{.*}}, ptr %b,
; ANY: store float 2.000000e+00, ptr [[TARGET]]
; EIGHT-NOT: select
; EIGHT: store float 2.000000e+00, ptr %b
define void @store_each() {
  %index = call i32 @__kiln_value(i32 18)
  %i = zext i32 %index to i64
  %a = getelementptr [1024 x float], ptr @enough, i64 0, i64 %i
  store float 1.0, ptr %a
  %b = getelementptr [1023 x float], ptr @too_few, i64 0, i64 %i
  store float 2.0, ptr %b
  ret void
}
