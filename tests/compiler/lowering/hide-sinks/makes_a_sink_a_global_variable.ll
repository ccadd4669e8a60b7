; A sink is a variable that is only the other choice of a guard: no load or store is known to go to it. As a global
; variable it survives SROA, which would make branches of stores that may go to a local one. Its lifetime ends nowhere.
; RUN: kiln-opt --passes=hide-sinks %s | FileCheck %s

declare void @llvm.lifetime.start.p0(i64, ptr)

; CHECK-DAG: @__kiln_sink = external global [64 x i8], align 16
; CHECK-DAG: @__kiln_sink.1 = external global i32, align 4

; CHECK-LABEL: define void @guarded(
; CHECK-NOT: alloca
; CHECK-NOT: lifetime
; CHECK: select i1 %c, ptr %x, ptr @__kiln_sink
; CHECK: select i1 %e, ptr %x, ptr @__kiln_sink
; CHECK: ret void
define void @guarded(ptr %x, i1 %c, i1 %d) {
  %sink = alloca [64 x i8], align 16
  %e = and i1 %c, %d
  call void @llvm.lifetime.start.p0(i64 64, ptr %sink)
  %one = select i1 %c, ptr %x, ptr %sink
  store i32 1, ptr %one
  %two = select i1 %e, ptr %x, ptr %sink
  store i32 2, ptr %two
  ret void
}

; Another function has a sink of its own.
; CHECK-LABEL: define void @guarded_too(
; CHECK: select i1 %c, ptr %x, ptr @__kiln_sink.1
define void @guarded_too(ptr %x, i1 %c) {
  %sink = alloca i32
  %one = select i1 %c, ptr %x, ptr %sink
  store i32 1, ptr %one
  ret void
}
