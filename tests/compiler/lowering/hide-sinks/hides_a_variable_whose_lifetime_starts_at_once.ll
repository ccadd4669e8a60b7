; A lifetime marker that directly follows its variable goes with it.
; RUN: kiln-opt --passes=hide-sinks %s | FileCheck %s

declare void @llvm.lifetime.start.p0(i64, ptr)

; CHECK-LABEL: define void @body(
; CHECK-NOT: alloca
; CHECK-NOT: call void @llvm.lifetime
; CHECK: select i1 %c, ptr %x, ptr @__kiln_sink
define void @body(ptr %x, i1 %c) {
  %sink = alloca i32
  call void @llvm.lifetime.start.p0(i64 4, ptr %sink)
  %to = select i1 %c, ptr %x, ptr %sink
  store i32 1, ptr %to
  ret void
}
