; An element of a product is a sum of eight products. Each step's factors are a permutation of the lanes' elements of
; `a`, its even and odd columns in turn, and one of `b`. Lanes that are off count as zeros.
; RUN: kiln-opt --passes=widen --full %s | FileCheck %s --check-prefix=FULL
; RUN: kiln-opt --passes=widen %s | FileCheck %s --check-prefix=PART

declare i32 @__kiln_lane()
declare float @__kiln_lanes_multiply32(float, float, float, float) convergent

; PART: %mask = icmp ult <32 x i32> {{.*}}, %
; PART: select <32 x i1> %mask, <32 x float> %{{.*}}, <32 x float> zeroinitializer
; PART: select <32 x i1> %mask, <32 x float> %{{.*}}, <32 x float> zeroinitializer
; PART: select <32 x i1> %mask, <32 x float> %{{.*}}, <32 x float> zeroinitializer
; FULL: %[[EVEN:.*]] = select <32 x i1> <i1 true
; FULL: %[[ODD:.*]] = select <32 x i1> <i1 true
; FULL: %[[B:.*]] = select <32 x i1> <i1 true
; FULL: %[[ROWS:.*]] = shufflevector <32 x float> %[[EVEN]], <32 x float> poison, <32 x i32> <i32 0, i32 0, i32 2, i32 2, i32 4,
; FULL: %[[COLUMNS:.*]] = shufflevector <32 x float> %[[B]], <32 x float> poison, <32 x i32> <i32 0, i32 1, i32 0, i32 1, i32 0,
; FULL: %[[FIRST:.*]] = call <32 x float> @llvm.fma.v32f32(<32 x float> %[[ROWS]], <32 x float> %[[COLUMNS]], <32 x float> zeroinitializer)
; FULL: %[[ROWS2:.*]] = shufflevector <32 x float> %[[ODD]], <32 x float> poison, <32 x i32> <i32 0, i32 0, i32 2, i32 2, i32 4,
; FULL: %[[COLUMNS2:.*]] = shufflevector <32 x float> %[[B]], <32 x float> poison, <32 x i32> <i32 2, i32 3, i32 2, i32 3, i32 2,
; FULL: call <32 x float> @llvm.fma.v32f32(<32 x float> %[[ROWS2]], <32 x float> %[[COLUMNS2]], <32 x float> %[[FIRST]])
; FULL-COUNT-6: call <32 x float> @llvm.fma.v32f32(
; FULL-NOT: call <32 x float> @llvm.fma
; FULL: ret void
; PART-COUNT-8: call <32 x float> @llvm.fma.v32f32(
; PART-NOT: call <32 x float> @llvm.fma
; PART: ret void
define void @product(ptr %arguments, i32 %lanes) {
entry:
  %y = load ptr, ptr %arguments, !invariant.load !0
  %lane = call i32 @__kiln_lane()
  %wide = zext i32 %lane to i64
  %at = getelementptr float, ptr %y, i64 %wide
  %even = load float, ptr %at
  %odd = fadd float %even, 1.0
  %other = fmul float %even, 2.0
  %sum = call float @__kiln_lanes_multiply32(float %even, float %odd, float %other, float 0.0) convergent
  store float %sum, ptr %at
  ret void
}

!0 = !{}
