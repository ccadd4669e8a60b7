; A clamped number has a range in every lane, so that the index of a pixel cannot wrap where all lanes are inside. What is
; left to test is the border.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s

declare i32 @__kiln_lane()
declare i32 @llvm.smax.i32(i32, i32)
declare i32 @llvm.umin.i32(i32, i32)

; CHECK-LABEL: define void @pixel(
; The distance of the narrow numbers from the first lane to the last, once.
; CHECK: sub i64
; CHECK: icmp eq i64 %{{.*}}, 31
; CHECK-NOT: icmp eq i64
; CHECK: br i1 %{{.*}}, label %row, label %lanes
; CHECK: row:
; CHECK: load <32 x float>
define void @pixel(ptr %x, ptr %y, i32 %first, i32 %r) {
  %lane = call i32 @__kiln_lane()
  %i = add i32 %first, %lane
  %positive = call i32 @llvm.smax.i32(i32 %i, i32 0)
  %column = call i32 @llvm.umin.i32(i32 %positive, i32 99)
  %line = call i32 @llvm.umin.i32(i32 %r, i32 49)
  %start = mul i32 %line, 100
  %index = add i32 %start, %column
  %at = zext i32 %index to i64
  %from = getelementptr float, ptr %x, i64 %at
  %v = load float, ptr %from
  %to = getelementptr float, ptr %y, i32 %lane
  store float %v, ptr %to
  ret void
}

; Of a line that is not limited the index may wrap.
; CHECK-LABEL: define void @any_line(
; CHECK: icmp eq i64 %{{.*}}, 31
; CHECK: icmp eq i64 %{{.*}}, 31
; CHECK: br i1 %{{.*}}, label %row, label %lanes
define void @any_line(ptr %x, ptr %y, i32 %first, i32 %r) {
  %lane = call i32 @__kiln_lane()
  %i = add i32 %first, %lane
  %positive = call i32 @llvm.smax.i32(i32 %i, i32 0)
  %column = call i32 @llvm.umin.i32(i32 %positive, i32 99)
  %start = mul i32 %r, 100
  %index = add i32 %start, %column
  %at = zext i32 %index to i64
  %from = getelementptr float, ptr %x, i64 %at
  %v = load float, ptr %from
  %to = getelementptr float, ptr %y, i32 %lane
  store float %v, ptr %to
  ret void
}
