; Code that is made for one grid and one size of an array needs no guard at the thread's own position, as the device
; library computes it, though the last threadgroup may be smaller. In an array of one element less it does.
; RUN: kiln-opt --passes=bounds-guards --grid=1000,1,1 --parameters=in:4:4000,out:4:3996 %s | FileCheck %s
; RUN: kiln-opt --passes=bounds-guards --parameters=in:4:4000,out:4:3996 %s | FileCheck %s --check-prefix=ANY

declare i32 @__kiln_value(i32)

; CHECK-LABEL: define void @body(
; CHECK: %v = load float, ptr %from
; CHECK: [[TARGET:%.*]] = select i1 {{.*}}, ptr %to,
; CHECK: store float %v, ptr [[TARGET]]
; ANY-LABEL: define void @body(
; ANY: [[PLACE:%.*]] = select i1 {{.*}}, ptr %from,
; ANY: %v = load float, ptr [[PLACE]]
define void @body(ptr %x, i64 %x.first, i64 %x.end, ptr %y, i64 %y.first, i64 %y.end, ptr %thread) {
  %group = call i32 @__kiln_value(i32 3)
  %threads = call i32 @__kiln_value(i32 9)
  %in.group = call i32 @__kiln_value(i32 0)
  %before = mul i32 %group, %threads
  %position = add i32 %before, %in.group
  %i = zext i32 %position to i64
  %from = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %from
  %to = getelementptr float, ptr %y, i64 %i
  store float %v, ptr %to
  ret void
}
