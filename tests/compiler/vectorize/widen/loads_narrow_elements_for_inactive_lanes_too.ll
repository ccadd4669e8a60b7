; Where no instruction masks halves, consecutive halves in bounds are loaded as a whole on one side of a branch: the
; bounds check covers all lanes. Without one the first and the last lane must be active, and for a store all lanes.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer
declare i32 @__kiln_lane()

; CHECK-LABEL: define void @guarded(
; CHECK: inside:
; CHECK-NOT: icmp eq i32 {{.*}}, -1
; CHECK: row:
; CHECK: load <32 x half>
define void @guarded(ptr %x, ptr %y, i64 %limit, i32 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  %w = zext i32 %lane to i64
  %c = icmp ult i32 %lane, %n
  br i1 %c, label %inside, label %end
inside:
  %offset = shl i64 %w, 1
  %at = getelementptr half, ptr %x, i64 %w
  %is_inside = icmp ult i64 %offset, %limit
  %from = select i1 %is_inside, ptr %at, ptr @__kiln_zeros.64
  %v = load half, ptr %from
  br label %end
end:
  %r = phi half [ 0.0, %entry ], [ %v, %inside ]
  %to = getelementptr half, ptr %y, i64 %w
  store half %r, ptr %to
  ret void
}

; CHECK-LABEL: define void @unguarded(
; CHECK: inside:
; CHECK: icmp eq i32 {{.*}}, -2147483647
; CHECK: row:
; CHECK: load <32 x half>
define void @unguarded(ptr %x, ptr %y, i32 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  %w = zext i32 %lane to i64
  %c = icmp ult i32 %lane, %n
  br i1 %c, label %inside, label %end
inside:
  %at = getelementptr half, ptr %x, i64 %w
  %v = load half, ptr %at
  br label %end
end:
  %r = phi half [ 0.0, %entry ], [ %v, %inside ]
  %to = getelementptr half, ptr %y, i64 %w
  store half %r, ptr %to
  ret void
}

; CHECK-LABEL: define void @stored(
; CHECK: inside:
; CHECK: icmp eq i32 {{.*}}, -1
; CHECK: row:
; CHECK: store <32 x half>
define void @stored(ptr %y, i32 %n, half %v) {
entry:
  %lane = call i32 @__kiln_lane()
  %w = zext i32 %lane to i64
  %c = icmp ult i32 %lane, %n
  br i1 %c, label %inside, label %end
inside:
  %to = getelementptr half, ptr %y, i64 %w
  store half %v, ptr %to
  br label %end
end:
  ret void
}
