; A sink that no access uses any more is deleted, and other global variables stay.
; RUN: kiln-opt --passes=restore-sinks %s | FileCheck %s

; CHECK-NOT: @__kiln_sink
; CHECK: @__kiln_zeros.64 = internal constant
; CHECK: @tile = internal global
@__kiln_sink = external global [64 x i8], align 16
@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer, align 64
@tile = internal global [4 x i32] zeroinitializer

; CHECK-LABEL: define i32 @body(
; CHECK-NOT: alloca
; CHECK: ret i32
define i32 @body(ptr %x, i1 %c) {
  %from = select i1 %c, ptr %x, ptr @__kiln_zeros.64
  %r = load i32, ptr %from
  store i32 %r, ptr @tile
  ret i32 %r
}
