; Rows of a stencil add something uniform to the same clamped column, before it is extended. A threadgroup of 16 threads
; a row has two rows in a simdgroup. The column is tested once;
; each row's first element is a sum of scalars, which must not wrap.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s

declare i32 @__kiln_lane()
declare i32 @llvm.smax.i32(i32, i32)

; CHECK-LABEL: define void @rows(
; CHECK-COUNT-2: icmp eq <16 x i32>
; CHECK: %[[TEST:.*]] = icmp eq i16 %{{.*}}, -1
; CHECK: %[[A:.*]] = add i32 %{{.*}}, %above
; CHECK: icmp sle i32 %[[A]], 2147483632
; CHECK: parts:
; CHECK-NOT: icmp eq <16 x i32>
; CHECK: %[[B:.*]] = add i32 %{{.*}}, %below
; CHECK: icmp sle i32 %[[B]], 2147483632
; CHECK-NOT: icmp eq <16 x i32>
; CHECK: ret void
define void @rows(ptr %x, ptr %y, i32 %first, i32 %width, i32 %above, i32 %below) {
  %lane = call i32 @__kiln_lane()
  %tx = and i32 %lane, 15
  %ty = lshr i32 %lane, 4
  %row = mul i32 %ty, %width
  %in_row = add i32 %row, %tx
  %i = add i32 %first, %in_row
  %column = call i32 @llvm.smax.i32(i32 %i, i32 0)
  %a = add i32 %column, %above
  %b = add i32 %column, %below
  %a64 = sext i32 %a to i64
  %b64 = sext i32 %b to i64
  %pa = getelementptr float, ptr %x, i64 %a64
  %pb = getelementptr float, ptr %x, i64 %b64
  %va = load float, ptr %pa
  %vb = load float, ptr %pb
  %s = fadd float %va, %vb
  %to = getelementptr float, ptr %y, i32 %lane
  store float %s, ptr %to
  ret void
}
