; Lanes that access neighboring elements access memory as one vector at the first lane's address. If not all 32 lanes
; are active the access is masked, and lanes that are off load zero.
; RUN: kiln-opt --passes=widen --full %s | FileCheck %s --check-prefix=FULL
; RUN: kiln-opt --passes=widen %s | FileCheck %s --check-prefix=PART

declare i32 @__kiln_lane()

; FULL-LABEL: define void @copy(
; FULL: %[[V:.*]] = load <32 x float>, ptr %{{.*}}, align 4
; FULL: store <32 x float> %[[V]], ptr %{{.*}}, align 4
; FULL-NEXT: ret void

; PART-LABEL: define void @copy(
; PART: insertelement <32 x i32> poison, i32 %lanes
; PART: %[[MASK:.*]] = icmp ult <32 x i32> <i32 0, i32 1, {{.*}}, i32 31>,
; PART: %[[V:.*]] = call <32 x float> @llvm.masked.load{{.*}}(ptr %{{.*}}, i32 4, <32 x i1> %[[MASK]], <32 x float> zeroinitializer)
; PART: call void @llvm.masked.store{{.*}}(<32 x float> %[[V]], ptr %{{.*}}, i32 4, <32 x i1> %[[MASK]])
; PART-NEXT: ret void
define void @copy(ptr %x, ptr %y, i64 %n, i32 %lanes) {
  %lane = call i32 @__kiln_lane()
  %i = zext i32 %lane to i64
  %block = getelementptr float, ptr %x, i64 %n
  %from = getelementptr float, ptr %block, i64 %i
  %v = load float, ptr %from
  %to = getelementptr float, ptr %y, i64 %i
  store float %v, ptr %to
  ret void
}
