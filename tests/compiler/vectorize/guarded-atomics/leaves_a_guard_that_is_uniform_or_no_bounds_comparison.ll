; A branch that all lanes take together costs nothing, and one on another condition than a bounds comparison is the
; body's own. There is no sink then either.
; RUN: kiln-opt --passes=guarded-atomics %s | FileCheck %s

; CHECK-NOT: @__kiln_sink

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @uniform(
; CHECK: br i1 %allowed, label %add, label %done
; CHECK: atomicrmw fadd ptr %y
define void @uniform(ptr %y, i64 %n, i64 %end, float %a) {
entry:
  %allowed = icmp ult i64 %n, %end
  br i1 %allowed, label %add, label %done
add:
  %old = atomicrmw fadd ptr %y, float %a monotonic
  br label %done
done:
  ret void
}

; CHECK-LABEL: define void @other_predicate(
; CHECK: br i1 %allowed, label %add, label %done
define void @other_predicate(ptr %y, i64 %end, float %a) {
entry:
  %lane = call i32 @__kiln_lane()
  %wide = zext i32 %lane to i64
  %allowed = icmp ne i64 %wide, %end
  br i1 %allowed, label %add, label %done
add:
  %old = atomicrmw fadd ptr %y, float %a monotonic
  br label %done
done:
  ret void
}

; CHECK-LABEL: define void @narrow_comparison(
; CHECK: br i1 %allowed, label %add, label %done
define void @narrow_comparison(ptr %y, i32 %end, float %a) {
entry:
  %lane = call i32 @__kiln_lane()
  %allowed = icmp ult i32 %lane, %end
  br i1 %allowed, label %add, label %done
add:
  %old = atomicrmw fadd ptr %y, float %a monotonic
  br label %done
done:
  ret void
}

; There is code on the other side.
; CHECK-LABEL: define void @two_sides(
; CHECK: br i1 %allowed, label %add, label %other
define void @two_sides(ptr %y, i64 %end, float %a) {
entry:
  %lane = call i32 @__kiln_lane()
  %wide = zext i32 %lane to i64
  %allowed = icmp ult i64 %wide, %end
  br i1 %allowed, label %add, label %other
add:
  %old = atomicrmw fadd ptr %y, float %a monotonic
  br label %done
other:
  store float %a, ptr %y
  br label %done
done:
  ret void
}
