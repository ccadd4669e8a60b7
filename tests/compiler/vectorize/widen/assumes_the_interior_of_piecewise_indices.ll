; An index that is clamped, chosen or wrapped has a stride in every simdgroup but those at a border. Scalars tell which
; these are: the first lane and the last one.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s

declare i32 @__kiln_lane()
declare i32 @llvm.smax.i32(i32, i32)

; The first lane decides where numbers ascend and do not wrap.
; CHECK-LABEL: define void @clamped(
; CHECK: icmp sle i32 %{{.*}}, %{{.*}}
; CHECK: icmp sge i32 %{{.*}}, %n
; CHECK-NOT: icmp sge i32
; CHECK: br i1 %{{.*}}, label %row, label %lanes
; CHECK: row:
; CHECK: load <32 x float>
define void @clamped(ptr %x, ptr %y, i32 %first, i32 %n) {
  %lane = call i32 @__kiln_lane()
  %i = add i32 %first, %lane
  %clamped = call i32 @llvm.smax.i32(i32 %i, i32 %n)
  %at = sext i32 %clamped to i64
  %from = getelementptr float, ptr %x, i64 %at
  %v = load float, ptr %from
  %to = getelementptr float, ptr %y, i32 %lane
  store float %v, ptr %to
  ret void
}

; One lane may be equal to the limit, between the first and the last. That none is the distance tells.
; CHECK-LABEL: define void @torus(
; CHECK: %[[DISTANCE:.*]] = sub i32 %last, %{{.*}}
; CHECK: icmp ugt i32 %{{.*}}
; CHECK: br i1 %{{.*}}, label %row, label %lanes
; CHECK: row:
; CHECK: load <32 x float>
define void @torus(ptr %x, ptr %y, i32 %first, i32 %last) {
  %lane = call i32 @__kiln_lane()
  %i = add i32 %first, %lane
  %next = add i32 %i, 1
  %is_last = icmp eq i32 %i, %last
  %right = select i1 %is_last, i32 0, i32 %next
  %at = sext i32 %right to i64
  %from = getelementptr float, ptr %x, i64 %at
  %v = load float, ptr %from
  %to = getelementptr float, ptr %y, i32 %lane
  store float %v, ptr %to
  ret void
}

; The lanes of a remainder do not pass the divisor.
; CHECK-LABEL: define void @remainder(
; CHECK: %[[FIRST:.*]] = urem i32 %{{.*}}, %n
; CHECK: icmp ule i32 %{{.*}}, %{{.*}}
; CHECK: br i1 %{{.*}}, label %row, label %lanes
; CHECK: row:
; CHECK: load <32 x float>
define void @remainder(ptr %x, ptr %y, i32 %first, i32 %n) {
  %lane = call i32 @__kiln_lane()
  %i = add i32 %first, %lane
  %r = urem i32 %i, %n
  %at = zext i32 %r to i64
  %from = getelementptr float, ptr %x, i64 %at
  %v = load float, ptr %from
  %to = getelementptr float, ptr %y, i32 %lane
  store float %v, ptr %to
  ret void
}

