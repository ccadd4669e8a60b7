; A uniform divisor that is a power of two, whichever, as a distance that a loop halves. An odd one is multiplied by its
; reciprocal.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @power(
; CHECK: call i32 @llvm.cttz.i32(
; CHECK-NOT: udiv
; CHECK: lshr <32 x i32>
; CHECK-NOT: mul <16 x i64>
; CHECK: store <32 x i32>
define void @power(ptr %x, ptr %y, i32 %log) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr i32, ptr %x, i32 %lane
  %n = load i32, ptr %from
  %d = shl i32 1, %log
  %q = udiv i32 %n, %d
  %to = getelementptr i32, ptr %y, i32 %lane
  store i32 %q, ptr %to
  ret void
}
