; A guard of each lane becomes one comparison of the lowest lane's offset with a limit for the highest one's. Without a
; guard all lanes must be active. What is not known of a number's lowest bits is taken for 0. A number that comes from
; data alone is not tested.
; RUN: kiln-opt --passes=widen --cpu=x86-64-v3 %s | FileCheck %s

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer

declare i32 @__kiln_lane()
declare i32 @llvm.smin.i32(i32, i32)

; The sixteenth element begins 60 bytes later.
; CHECK-LABEL: define void @guarded(
; CHECK: %[[ROOM:.+]] = call i64 @llvm.usub.sat.i64(i64 %{{.+}}, i64 60)
; CHECK: icmp ult i64 %{{.+}}, %[[ROOM]]
; CHECK: br i1 %{{.+}}, label %pattern, label %lanes
define void @guarded(ptr %launch, ptr %record, ptr %x, ptr %y, i64 %end, i32 %group, i32 %n, i32 %lanes) {
  %limit = call i64 @llvm.usub.sat.i64(i64 %end, i64 3)
  %first = shl i32 %group, 5
  %lane = call i32 @__kiln_lane()
  %i = or disjoint i32 %first, %lane
  %half = lshr i32 %i, 1
  %clamped = call i32 @llvm.smin.i32(i32 %half, i32 %n)
  %at = sext i32 %clamped to i64
  %from = getelementptr float, ptr %x, i64 %at
  %offset = shl i64 %at, 2
  %is.in = icmp ult i64 %offset, %limit
  %guarded = select i1 %is.in, ptr %from, ptr @__kiln_zeros.64
  %v = load float, ptr %guarded
  %to = getelementptr float, ptr %y, i32 %lane
  store float %v, ptr %to
  ret void
}

; CHECK-LABEL: define void @some_lanes(
; CHECK: {{^}}then:
; CHECK: %[[NUMBERS:.+]] = freeze <32 x i32>
; CHECK: extractelement <32 x i32> %[[NUMBERS]], i64 0
; CHECK: %[[ALL:.+]] = icmp eq i32 %{{.+}}, -1
; CHECK: and i1 %{{.+}}, %[[ALL]]
; CHECK: br i1 %{{.+}}, label %pattern, label %lanes
define void @some_lanes(ptr %launch, ptr %record, ptr %x, ptr %y, i32 %group, i32 %n, i32 %lanes) {
  %first = shl i32 %group, 5
  %lane = call i32 @__kiln_lane()
  %i = or disjoint i32 %first, %lane
  %to = getelementptr float, ptr %y, i32 %lane
  %some = load float, ptr %to
  %is.wanted = fcmp ogt float %some, 0.5
  br i1 %is.wanted, label %then, label %end
then:
  %half = lshr i32 %i, 1
  %clamped = call i32 @llvm.smin.i32(i32 %half, i32 %n)
  %at = sext i32 %clamped to i64
  %from = getelementptr float, ptr %x, i64 %at
  %v = load float, ptr %from
  store float %v, ptr %to
  br label %end
end:
  ret void
}

; Of `(first + lane) / 2` that `first` is even.
; CHECK-LABEL: define void @even(
; CHECK: icmp eq <8 x i32> %{{.+}}, <i32 0, i32 0, i32 1, i32 1
; CHECK: br i1 %{{.+}}, label %pattern, label %lanes
define void @even(ptr %launch, ptr %record, ptr %x, ptr %y, i32 %first, i32 %n, i32 %lanes) {
  %lane = call i32 @__kiln_lane()
  %i = add i32 %first, %lane
  %half = sdiv i32 %i, 2
  %at = sext i32 %half to i64
  %from = getelementptr i8, ptr %x, i64 %at
  %v = load i8, ptr %from
  %to = getelementptr i8, ptr %y, i32 %lane
  store i8 %v, ptr %to
  ret void
}

; CHECK-LABEL: define void @of_data(
; CHECK-NOT: {{^}}pattern
; CHECK: ret void
define void @of_data(ptr %launch, ptr %record, ptr %x, ptr %y, i32 %first, i32 %n, i32 %lanes) {
  %lane = call i32 @__kiln_lane()
  %k.at = getelementptr i32, ptr %x, i32 %lane
  %k = load i32, ptr %k.at
  %k.half = lshr i32 %k, 1
  %k.from = getelementptr float, ptr %x, i32 %k.half
  %w = load float, ptr %k.from
  %to = getelementptr float, ptr %y, i32 %lane
  store float %w, ptr %to
  ret void
}

; Of 8 bits the last lanes' numbers are the first ones' again.
; CHECK-LABEL: define void @narrow(
; CHECK-NOT: {{^}}pattern
; CHECK: ret void
define void @narrow(ptr %launch, ptr %record, ptr %x, ptr %y, i32 %group, i8 %n, i32 %lanes) {
  %first = shl i32 %group, 5
  %lane = call i32 @__kiln_lane()
  %i = or disjoint i32 %first, %lane
  %quarter = lshr i32 %i, 2
  %steps = mul i32 %quarter, 40
  %narrow = trunc i32 %steps to i8
  %clamped = call i8 @llvm.umax.i8(i8 %narrow, i8 %n)
  %at = zext i8 %clamped to i64
  %from = getelementptr float, ptr %x, i64 %at
  %v = load float, ptr %from
  %to = getelementptr float, ptr %y, i32 %lane
  store float %v, ptr %to
  ret void
}

declare i8 @llvm.umax.i8(i8, i8)
declare i64 @llvm.usub.sat.i64(i64, i64)
