; A copy of no vector's size, of a size that is known at run time alone, a volatile one, or one to device or private memory
; stays, and so does a fill.
; RUN: kiln-opt --passes=vector-copies %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"

@tile = internal global [64 x float] poison, section "kiln.threadgroup", align 16

; CHECK-LABEL: @others(
; CHECK-NOT: load
; CHECK: call void @llvm.memcpy.p0.p0.i64(ptr %y, ptr %x, i64 12, i1 false)
; CHECK: call void @llvm.memcpy.p0.p0.i64(ptr %y, ptr %x, i64 32, i1 false)
; CHECK: call void @llvm.memcpy.p0.p0.i64(ptr %y, ptr %x, i64 %n, i1 false)
; CHECK: call void @llvm.memcpy.p0.p0.i64(ptr %y, ptr %x, i64 16, i1 true)
; CHECK: call void @llvm.memset.p0.i64(ptr %y, i8 0, i64 16, i1 false)
; CHECK: call void @llvm.memcpy.p0.p0.i64(ptr %out, ptr %x, i64 16, i1 false)
; CHECK: call void @llvm.memcpy.p0.p0.i64(ptr %own, ptr %x, i64 16, i1 false)
; CHECK-NOT: load
; CHECK: ret void
define void @others(ptr %x, ptr %out, i64 %n) {
  %y = getelementptr float, ptr @tile, i64 %n
  %own = alloca <4 x float>
  call void @llvm.memcpy.p0.p0.i64(ptr %y, ptr %x, i64 12, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %y, ptr %x, i64 32, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %y, ptr %x, i64 %n, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %y, ptr %x, i64 16, i1 true)
  call void @llvm.memset.p0.i64(ptr %y, i8 0, i64 16, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %out, ptr %x, i64 16, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %own, ptr %x, i64 16, i1 false)
  ret void
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
