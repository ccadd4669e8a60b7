; A sum of one axis' threadgroups with another axis' threads is no position: threadgroups of (1000, 1) threads would lie
; at 1000 times 3 and above. Positions in a threadgroup and of threadgroups have ranges of their own.
; RUN: kiln-opt --passes=bounds-guards --grid=1000,4,1 --threads=100,2,1 --parameters=in:4:4000,out:4:40 %s | FileCheck %s

declare i32 @__kiln_value(i32)

; CHECK-LABEL: define void @body(
; CHECK: [[PLACE:%.*]] = select i1 {{.*}}, ptr %from,
; CHECK: %v = load float, ptr [[PLACE]]
; CHECK: store float %v, ptr %to
define void @body(ptr %x, i64 %x.first, i64 %x.end, ptr %y, i64 %y.first, i64 %y.end, ptr %thread) {
  %group.y = call i32 @__kiln_value(i32 4)
  %threads.x = call i32 @__kiln_value(i32 9)
  %in.group.x = call i32 @__kiln_value(i32 0)
  %before = mul i32 %group.y, %threads.x
  %sum = add i32 %before, %in.group.x
  %far = mul i32 %sum, 6
  %i = zext i32 %far to i64
  %from = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %from
  ; Of ten threadgroups in x.
  %group.x = call i32 @__kiln_value(i32 3)
  %g = zext i32 %group.x to i64
  %to = getelementptr float, ptr %y, i64 %g
  store float %v, ptr %to
  ret void
}
