; Tables of more than eight registers, of doubles, variables, constants that are defined elsewhere and structures whose
; elements lie apart are gathered.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s --implicit-check-not=vperm --implicit-check-not=permvar

@large = internal constant [129 x float] zeroinitializer
@doubles = internal constant [4 x double] [double 1.0, double 2.0, double 3.0, double 4.0]
@variable = internal global [16 x float] zeroinitializer
@elsewhere = external constant [16 x float]
@apart = internal constant [8 x { float, float }] zeroinitializer

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @all(
; CHECK: call <32 x float> @llvm.masked.gather
; CHECK: call <32 x double> @llvm.masked.gather
; CHECK: call <32 x float> @llvm.masked.gather
; CHECK: call <32 x float> @llvm.masked.gather
; CHECK: call <32 x float> @llvm.masked.gather
define void @all(ptr %indices, ptr %y, ptr %z) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i32, ptr %indices, i32 %lane
  %k = load i32, ptr %at
  %a = getelementptr float, ptr @large, i32 %k
  %va = load float, ptr %a
  %b = getelementptr double, ptr @doubles, i32 %k
  %vb = load double, ptr %b
  %c = getelementptr float, ptr @variable, i32 %k
  %vc = load float, ptr %c
  %d = getelementptr float, ptr @elsewhere, i32 %k
  %vd = load float, ptr %d
  %e = getelementptr { float, float }, ptr @apart, i32 %k
  %ve = load float, ptr %e
  %s = fadd float %va, %vc
  %t = fadd float %vd, %ve
  %u = fadd float %s, %t
  %to = getelementptr float, ptr %y, i32 %lane
  store float %u, ptr %to
  %double_to = getelementptr double, ptr %z, i32 %lane
  store double %vb, ptr %double_to
  ret void
}
