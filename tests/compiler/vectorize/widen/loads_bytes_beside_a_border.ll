; Where bytes are clamped at a border, lanes load by themselves: as parts of words, or one by one.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s --check-prefixes=CHECK,WIDE
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s --check-prefixes=CHECK,NARROW

declare i32 @__kiln_lane()
declare i32 @llvm.smax.i32(i32, i32)

; CHECK-LABEL: define void @bytes(
; CHECK: row:
; CHECK: load <32 x i8>
; CHECK: lanes:
; WIDE: call <32 x i32> @llvm.masked.gather
; NARROW: lane:
; NARROW: load i8
define void @bytes(ptr %x, ptr %y, i32 %first) {
  %lane = call i32 @__kiln_lane()
  %i = add i32 %first, %lane
  %clamped = call i32 @llvm.smax.i32(i32 %i, i32 0)
  %at = sext i32 %clamped to i64
  %from = getelementptr i8, ptr %x, i64 %at
  %v = load i8, ptr %from
  %to = getelementptr i8, ptr %y, i32 %lane
  store i8 %v, ptr %to
  ret void
}
