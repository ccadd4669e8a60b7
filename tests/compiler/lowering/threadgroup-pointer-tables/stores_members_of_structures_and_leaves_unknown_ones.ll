; A table of structures is stored number by number, and a copy of it reads the thread's variable. A member that has no
; value gets no store.
; RUN: kiln-opt --passes=threadgroup-pointer-tables %s | FileCheck %s

%part = type { ptr, i32 }

@shared = internal global [16 x float] undef, section "kiln.threadgroup", align 16

; CHECK-NOT: @parts
@parts = internal constant [2 x %part] [%part { ptr @shared, i32 16 }, %part { ptr null, i32 undef }]

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; CHECK-LABEL: define void @body(
; CHECK: [[TABLE:%.*]] = alloca [2 x %part]
; CHECK: store ptr @shared, ptr
; CHECK: store i32 16, ptr
; CHECK: store ptr null, ptr
; CHECK-NOT: store
; CHECK: call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr [[TABLE]], i64 32, i1 false)
define void @body(ptr %p) {
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr @parts, i64 32, i1 false)
  ret void
}
