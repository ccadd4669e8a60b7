; A row is the same in most neighbouring lanes. Where all lanes of each part have it, each part is one element for all of
; them; otherwise the lanes are gathered. A store of a quotient's element is not tested.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @of_row(
; CHECK-COUNT-2: icmp eq <16 x i32> %{{.*}}, zeroinitializer
; CHECK: br i1 %{{.*}}, label %parts, label %lanes
; CHECK: parts:
; CHECK-COUNT-2: load float, ptr
; CHECK: lanes:
; CHECK: call <32 x float> @llvm.masked.gather
; CHECK-NOT: parts{{[0-9]+}}:
; CHECK: call void @llvm.masked.scatter
; CHECK: ret void
define void @of_row(ptr %x, ptr %y, i32 %first) {
  %lane = call i32 @__kiln_lane()
  %i = add i32 %first, %lane
  %row = udiv i32 %i, 100
  %at = zext i32 %row to i64
  %from = getelementptr float, ptr %x, i64 %at
  %v = load float, ptr %from
  %to = getelementptr float, ptr %y, i64 %at
  store float %v, ptr %to
  ret void
}
