; A guard's branch around an atomic addition becomes a select between the address and a sink, as for stores, so that the
; lanes are checked as one range. Address arithmetic under the guard is computed before it.
; RUN: kiln-opt --passes=guarded-atomics %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK: @[[SINK:__kiln_sink.*]] = external global [64 x i8], align 16
; CHECK-LABEL: define void @guarded(
; CHECK-NOT: br i1
; CHECK: %allowed = icmp ult i64 %offset, %end
; CHECK-NEXT: %address = getelementptr i8, ptr %y, i64 %offset
; CHECK-NEXT: %[[SELECTED:.*]] = select i1 %allowed, ptr %address, ptr @[[SINK]]
; CHECK-NEXT: atomicrmw fadd ptr %[[SELECTED]], float %a monotonic
; CHECK-NEXT: ret void
define void @guarded(ptr %y, i64 %end, float %a) {
entry:
  %lane = call i32 @__kiln_lane()
  %wide = zext i32 %lane to i64
  %offset = shl i64 %wide, 2
  %allowed = icmp ult i64 %offset, %end
  br i1 %allowed, label %add, label %done
add:
  %address = getelementptr inbounds i8, ptr %y, i64 %offset
  %old = atomicrmw fadd ptr %address, float %a monotonic
  br label %done
done:
  ret void
}
