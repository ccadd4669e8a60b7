; Lanes that the guard forbids execute the block too, with the sink. So its other instructions must be safe for them,
; the old value must be unused, and there are at most 16 of these instructions.
; RUN: kiln-opt --passes=guarded-atomics %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define float @old_value_is_used(
; CHECK: br i1 %allowed, label %add, label %done
define float @old_value_is_used(ptr %y, i64 %end, float %a) {
entry:
  %lane = call i32 @__kiln_lane()
  %wide = zext i32 %lane to i64
  %allowed = icmp ult i64 %wide, %end
  br i1 %allowed, label %add, label %done
add:
  %old = atomicrmw fadd ptr %y, float %a monotonic
  br label %done
done:
  %result = phi float [ %old, %add ], [ 0.0, %entry ]
  ret float %result
}

; CHECK-LABEL: define void @loads_under_the_guard(
; CHECK: br i1 %allowed, label %add, label %done
define void @loads_under_the_guard(ptr %y, ptr %x, i64 %end) {
entry:
  %lane = call i32 @__kiln_lane()
  %wide = zext i32 %lane to i64
  %allowed = icmp ult i64 %wide, %end
  br i1 %allowed, label %add, label %done
add:
  %from = getelementptr float, ptr %x, i64 %wide
  %a = load float, ptr %from
  %old = atomicrmw fadd ptr %y, float %a monotonic
  br label %done
done:
  ret void
}

; CHECK-LABEL: define void @updates_an_integer(
; CHECK: br i1 %allowed, label %add, label %done
define void @updates_an_integer(ptr %y, i64 %end, i32 %a) {
entry:
  %lane = call i32 @__kiln_lane()
  %wide = zext i32 %lane to i64
  %allowed = icmp ult i64 %wide, %end
  br i1 %allowed, label %add, label %done
add:
  %old = atomicrmw add ptr %y, i32 %a monotonic
  br label %done
done:
  ret void
}

; CHECK-LABEL: define void @two_updates(
; CHECK: br i1 %allowed, label %add, label %done
define void @two_updates(ptr %y, ptr %z, i64 %end, float %a) {
entry:
  %lane = call i32 @__kiln_lane()
  %wide = zext i32 %lane to i64
  %allowed = icmp ult i64 %wide, %end
  br i1 %allowed, label %add, label %done
add:
  %one = atomicrmw fadd ptr %y, float %a monotonic
  %other = atomicrmw fadd ptr %z, float %a monotonic
  br label %done
done:
  ret void
}

; A phi after the block that tells the two ways apart needs the branch.
; CHECK-LABEL: define i32 @phi_tells_the_ways_apart(
; CHECK: br i1 %allowed, label %add, label %done
define i32 @phi_tells_the_ways_apart(ptr %y, i64 %end, float %a) {
entry:
  %lane = call i32 @__kiln_lane()
  %wide = zext i32 %lane to i64
  %allowed = icmp ult i64 %wide, %end
  br i1 %allowed, label %add, label %done
add:
  %one = atomicrmw fadd ptr %y, float %a monotonic
  br label %done
done:
  %was = phi i32 [ 1, %add ], [ 0, %entry ]
  ret i32 %was
}
