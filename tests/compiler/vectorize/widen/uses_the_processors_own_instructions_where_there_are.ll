; An approximation, a product with a power of two and a permutation by variable lanes are the processor's own
; instructions, for a register each. Where it has none, the calls stay, lane by lane, for the passes that expand them, and
; the permutation is a gather from memory.
; RUN: kiln-opt --passes=widen --cpu=x86-64-v4 %s | FileCheck %s --check-prefix=ALL
; RUN: kiln-opt --passes=widen --cpu=x86-64-v3 %s | FileCheck %s --check-prefix=ESTIMATE
; RUN: kiln-opt --passes=widen --cpu=x86-64-v2 %s | FileCheck %s --check-prefix=NONE

declare i32 @__kiln_lane()
declare i32 @__kiln_lanes_shuffle32(i32, i32) #1
declare float @__kiln_rsqrt(float, float) #0
declare float @__kiln_scaled(float, float, i32) #0

; ALL-LABEL: define void @operations(
; ALL-COUNT-2: call <16 x float> @llvm.x86.avx512.rsqrt14.ps.512(
; ALL-NOT: __kiln
; ALL-COUNT-2: call <16 x float> @llvm.x86.avx512.mask.scalef.ps.512(
; ALL-NOT: __kiln
; ALL-COUNT-2: call <16 x i32> @llvm.x86.avx512.vpermi2var.d.512(
; ALL: ret void

; ESTIMATE-LABEL: define void @operations(
; ESTIMATE-COUNT-4: call <8 x float> @llvm.x86.avx.rsqrt.ps.256(
; ESTIMATE-NOT: __kiln_rsqrt
; ESTIMATE: call float @__kiln_scaled(
; ESTIMATE: call <32 x i32> @llvm.masked.gather
; ESTIMATE: ret void

; NONE-LABEL: define void @operations(
; NONE-NOT: llvm.x86
; NONE: call float @__kiln_rsqrt(
; NONE-NOT: llvm.x86
; NONE: call float @__kiln_scaled(
; NONE-NOT: llvm.x86
; NONE: call <32 x i32> @llvm.masked.gather
; NONE: ret void
define void @operations(ptr %x, ptr %y, i32 %lanes) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %x, i32 %lane
  %v = load float, ptr %from
  %root = call float @llvm.sqrt.f32(float %v)
  %exact = fdiv float 1.0, %root
  %inverse = call float @__kiln_rsqrt(float %v, float %exact)
  %power = fptosi float %v to i32
  %rounded = sitofp i32 %power to float
  %scaled = call float @__kiln_scaled(float %inverse, float %rounded, i32 %power)
  %word = bitcast float %scaled to i32
  %taken = call i32 @__kiln_lanes_shuffle32(i32 %word, i32 %power)
  %to = getelementptr i32, ptr %y, i32 %lane
  store i32 %taken, ptr %to
  ret void
}

attributes #0 = { memory(none) nounwind willreturn speculatable }
attributes #1 = { convergent nounwind willreturn memory(none) }
