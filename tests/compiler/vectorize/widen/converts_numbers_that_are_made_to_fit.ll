; A saturating conversion is one of numbers that are made to fit before; what was too large, or no number, is chosen
; afterwards. Where the largest integer is a float, nothing is too large.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s

declare i32 @__kiln_lane()
declare i32 @llvm.fptosi.sat.i32.f32(float)
declare i8 @llvm.fptoui.sat.i8.f16(half)

; CHECK-LABEL: define void @word(
; CHECK-NOT: fptosi.sat
; CHECK: fcmp ogt <32 x float> %[[X:.*]], <float 0xC1E0000000000000,
; CHECK: fcmp olt <32 x float> %{{.*}}, <float 0x41DFFFFFE0000000,
; CHECK: fptosi <32 x float> %{{.*}} to <32 x i32>
; CHECK: fcmp ogt <32 x float> %[[X]], <float 0x41DFFFFFE0000000,
; CHECK: select <32 x i1> %{{.*}}, <32 x i32> <i32 2147483647,
; CHECK: fcmp ord <32 x float> %[[X]],
define void @word(ptr %x, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %x, i32 %lane
  %v = load float, ptr %from
  %i = call i32 @llvm.fptosi.sat.i32.f32(float %v)
  %to = getelementptr i32, ptr %y, i32 %lane
  store i32 %i, ptr %to
  ret void
}

; CHECK-LABEL: define void @byte_of_half(
; CHECK: fpext <32 x half> %{{.*}} to <32 x float>
; CHECK: fptosi <32 x float> %{{.*}} to <32 x i32>
; CHECK: trunc <32 x i32> %{{.*}} to <32 x i8>
; CHECK-NOT: fcmp
; CHECK: ret void
define void @byte_of_half(ptr %x, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr half, ptr %x, i32 %lane
  %v = load half, ptr %from
  %i = call i8 @llvm.fptoui.sat.i8.f16(half %v)
  %to = getelementptr i8, ptr %y, i32 %lane
  store i8 %i, ptr %to
  ret void
}
