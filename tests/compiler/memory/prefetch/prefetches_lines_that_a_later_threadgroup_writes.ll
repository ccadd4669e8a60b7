; A store must fetch its line, too, and blocks all later stores meanwhile. From 1 KiB that a threadgroup writes, the
; lines are prefetched, all at once and before the stores; 15 lines are not.
; RUN: kiln-opt --passes=prefetch %s | FileCheck %s

; CHECK-LABEL: @one_kib(
; CHECK-COUNT-16: call void @llvm.prefetch.p0({{.*}}, i32 0, i32 2, i32 1)
; CHECK-NOT: @llvm.prefetch
; CHECK: store <256 x float>
define void @one_kib(ptr %data, ptr %record) {
  %group.at = getelementptr i8, ptr %record, i64 12
  %group = load i32, ptr %group.at, !invariant.load !0
  %group.wide = zext i32 %group to i64
  %first = shl i64 %group.wide, 10
  %address = getelementptr i8, ptr %data, i64 %first
  store <256 x float> zeroinitializer, ptr %address, align 4
  ret void
}

; CHECK-LABEL: @one_line_less(
; CHECK-NOT: @llvm.prefetch
; CHECK: ret void
define void @one_line_less(ptr %data, ptr %record) {
  %group.at = getelementptr i8, ptr %record, i64 12
  %group = load i32, ptr %group.at, !invariant.load !0
  %group.wide = zext i32 %group to i64
  %first = shl i64 %group.wide, 10
  %address = getelementptr i8, ptr %data, i64 %first
  store <240 x float> zeroinitializer, ptr %address, align 4
  ret void
}

!0 = !{}
