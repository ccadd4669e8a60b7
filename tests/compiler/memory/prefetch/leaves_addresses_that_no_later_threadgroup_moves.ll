; What all threadgroups read is in the cache already. An address that is divided, which is not safe for any operands,
; is not computed for a later threadgroup; nor one that depends on a value that was loaded.
; RUN: kiln-opt --passes=prefetch %s | FileCheck %s
; RUN: kiln-opt --passes=prefetch --remarks %s 2>&1 | FileCheck %s --check-prefix=REMARK

; REMARK: remark: prefetch: not for this access: its address depends on a division
; REMARK-NEXT: remark: prefetch: not for this access: its address depends on what the threadgroup loads
; REMARK-NOT: remark:

; CHECK-LABEL: @same_for_all(
; CHECK-NOT: @llvm.prefetch
; CHECK: load <1024 x float>
; CHECK-NOT: @llvm.prefetch
; CHECK: ret
define <1024 x float> @same_for_all(ptr %data, ptr %record) {
  %address = getelementptr i8, ptr %data, i64 4096
  %page = load <1024 x float>, ptr %address, align 4
  ret <1024 x float> %page
}

; CHECK-LABEL: @divided(
; CHECK-NOT: @llvm.prefetch
; CHECK: load <1024 x float>
; CHECK-NOT: @llvm.prefetch
; CHECK: ret
define <1024 x float> @divided(ptr %data, ptr %record, i32 %pages) {
  %group.at = getelementptr i8, ptr %record, i64 12
  %group = load i32, ptr %group.at, !invariant.load !0
  %quotient = udiv i32 %pages, %group
  %page.number = zext i32 %quotient to i64
  %first = shl i64 %page.number, 12
  %address = getelementptr i8, ptr %data, i64 %first
  %page = load <1024 x float>, ptr %address, align 4
  ret <1024 x float> %page
}

; CHECK-LABEL: @loaded(
; CHECK-NOT: @llvm.prefetch
; CHECK: load <1024 x float>
; CHECK-NOT: @llvm.prefetch
; CHECK: ret
define <1024 x float> @loaded(ptr %data, ptr %record, ptr %table) {
  %group.at = getelementptr i8, ptr %record, i64 12
  %group = load i32, ptr %group.at, !invariant.load !0
  %group.wide = zext i32 %group to i64
  %entry.at = getelementptr i64, ptr %table, i64 %group.wide
  %first = load i64, ptr %entry.at
  %address = getelementptr i8, ptr %data, i64 %first
  %page = load <1024 x float>, ptr %address, align 4
  ret <1024 x float> %page
}

!0 = !{}
