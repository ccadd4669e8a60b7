; Where bytes are clamped at a border, the lanes that are consecutive are one masked load. The others are loaded lane by
; lane.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s --check-prefixes=CHECK,WIDE
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s --check-prefixes=CHECK,NARROW

declare i32 @__kiln_lane()
declare i32 @llvm.smax.i32(i32, i32)

; CHECK-LABEL: define void @bytes(
; CHECK: row:
; CHECK: load <32 x i8>
; WIDE: lanes:
; WIDE: %[[IN_LINE:.*]] = icmp eq <32 x i64>
; WIDE: call <32 x i8> @llvm.masked.load.v32i8.p0(ptr %{{.*}}, i32 1, <32 x i1> 
; NARROW-NOT: @llvm.masked.load.v32i8
; CHECK: lane:
; WIDE: select <32 x i1> %[[IN_LINE]]
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
