; An array of floats with an index that a loop changes: 32 lanes' elements lie side by side, and a lane's base is its own
; element of the first 32. Offsets are multiplied by 32.
; RUN: kiln-opt --passes=interleaved-variables %s | FileCheck %s

; CHECK-LABEL: define float @array(
; CHECK: %[[ALL:.*]] = alloca [2048 x i8], align 64, !kiln.uniform
; CHECK: %[[LANE:.*]] = call i32 @__kiln_lane()
; CHECK: %[[WIDE:.*]] = zext i32 %[[LANE]] to i64
; CHECK: %[[BYTES:.*]] = mul i64 %[[WIDE]], 4
; CHECK: %[[OWN:.*]] = getelementptr i8, ptr %[[ALL]], i64 %[[BYTES]]
; CHECK-NOT: lifetime
; CHECK: %[[OFFSET:.*]] = {{shl|mul}} i64 %i,
; CHECK: %[[SCALED:.*]] = mul i64 %[[OFFSET]], 32
; CHECK: %[[AT:.*]] = getelementptr i8, ptr %[[OWN]], i64 %[[SCALED]]
; CHECK: store float %v, ptr %[[AT]]
; CHECK: getelementptr i8, ptr %[[OWN]], i64 384
; CHECK: load float
; An element is not aligned as the array was.
; CHECK: load float, ptr %[[OWN]], align 4
define float @array(float %v, i64 %i) {
  %w = alloca [16 x float], align 16
  call void @llvm.lifetime.start.p0(i64 64, ptr %w)
  %at = getelementptr [16 x float], ptr %w, i64 0, i64 %i
  store float %v, ptr %at
  %third = getelementptr i8, ptr %w, i64 12
  %r = load float, ptr %third, align 4
  %first = load float, ptr %w, align 16
  store float %first, ptr %at, align 4
  call void @llvm.lifetime.end.p0(i64 64, ptr %w)
  ret float %r
}

declare void @llvm.lifetime.start.p0(i64, ptr)
declare void @llvm.lifetime.end.p0(i64, ptr)
