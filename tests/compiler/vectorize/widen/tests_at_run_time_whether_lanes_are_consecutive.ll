; The step of a clamped index is not known when the kernel is compiled if rows of threads are shorter than a simdgroup. Its
; lanes are compared with the first one of each part plus 0, 1, 2, ...: where all parts pass, each is one load. Otherwise
; the lanes are gathered.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s --check-prefixes=CHECK,WIDE
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s --check-prefixes=CHECK,NARROW

declare i32 @__kiln_lane()
declare i32 @llvm.smax.i32(i32, i32)

; CHECK-LABEL: define void @clamped(
; CHECK: %[[I:.*]] = call <32 x i32> @llvm.smax.v32i32(
; WIDE-COUNT-2: icmp eq <16 x i32>
; WIDE: bitcast <16 x i1> %{{.*}} to i16
; NARROW-COUNT-4: icmp eq <8 x i32>
; NARROW: bitcast <8 x i1> %{{.*}} to i8
; CHECK: br i1 %{{.*}}, label %parts, label %lanes
; CHECK: parts:
; WIDE-COUNT-2: load <16 x float>
; NARROW-COUNT-4: load <8 x float>
; CHECK: lanes:
; CHECK-NEXT: call <32 x float> @llvm.masked.gather
define void @clamped(ptr %x, ptr %y, i32 %first, i32 %width) {
  %lane = call i32 @__kiln_lane()
  %tx = and i32 %lane, 15
  %ty = lshr i32 %lane, 4
  %row = mul i32 %ty, %width
  %in_row = add i32 %row, %tx
  %i = add i32 %first, %in_row
  %clamped = call i32 @llvm.smax.i32(i32 %i, i32 0)
  %at = sext i32 %clamped to i64
  %from = getelementptr float, ptr %x, i64 %at
  %v = load float, ptr %from
  %to = getelementptr float, ptr %y, i32 %lane
  store float %v, ptr %to
  ret void
}

; A number that is extended by its sign is consecutive only if it does not wrap on the way.
; CHECK-LABEL: define void @of_bytes(
; WIDE-COUNT-2: icmp sle i32 %{{.*}}, 2147483632
; WIDE: parts:
; WIDE-COUNT-2: load <16 x i8>
; NARROW-COUNT-4: icmp sle i32 %{{.*}}, 2147483640
; NARROW: parts:
; NARROW-COUNT-4: load <8 x i8>
define void @of_bytes(ptr %x, ptr %y, i32 %first, i32 %n, i32 %width) {
  %lane = call i32 @__kiln_lane()
  %tx = and i32 %lane, 15
  %ty = lshr i32 %lane, 4
  %row = mul i32 %ty, %width
  %in_row = add i32 %row, %tx
  %i = add i32 %first, %in_row
  %inner = icmp slt i32 %i, %n
  %kept = select i1 %inner, i32 %i, i32 %n
  %at = sext i32 %kept to i64
  %from = getelementptr i8, ptr %x, i64 %at
  %v = load i8, ptr %from
  %to = getelementptr i8, ptr %y, i32 %lane
  store i8 %v, ptr %to
  ret void
}
