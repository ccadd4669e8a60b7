; The side of a divergent branch runs if any lane takes it, under a mask of those that do, and a phi at the join becomes
; a select. Lanes that do not take it store nothing there.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @value_of_one_side(
; CHECK: %[[V:.*]] = load <32 x float>
; CHECK: %[[C:.*]] = fcmp ogt <32 x float> %[[V]],
; CHECK: %[[ANY:.*]] = icmp ne i32 %{{.*}}, 0
; CHECK-NEXT: br i1 %[[ANY]], label %then, label %join
; CHECK: then:
; CHECK: %[[MASK:.*]] = select <32 x i1> {{.*}}, <32 x i1> %[[C]], <32 x i1> zeroinitializer
; CHECK: %[[D:.*]] = fdiv <32 x float> %[[V]],
; CHECK: %[[R:.*]] = select <32 x i1> %[[MASK]], <32 x float> %[[D]], <32 x float> %[[V]]
; CHECK: join:
; CHECK-NEXT: phi <32 x float> [ %[[R]], %then ], [ %[[V]], %
define void @value_of_one_side(ptr %x, ptr %y, float %limit, i32 %lanes) {
entry:
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %x, i32 %lane
  %v = load float, ptr %from
  %c = fcmp ogt float %v, %limit
  br i1 %c, label %then, label %join
then:
  %d = fdiv float %v, %limit
  br label %join
join:
  %r = phi float [ %d, %then ], [ %v, %entry ]
  %to = getelementptr float, ptr %y, i32 %lane
  store float %r, ptr %to
  ret void
}

; CHECK-LABEL: define void @masked_store(
; CHECK: %[[C:.*]] = fcmp ogt <32 x float>
; CHECK: then:
; CHECK: %[[MASK:.*]] = select <32 x i1> {{.*}}, <32 x i1> %[[C]], <32 x i1> zeroinitializer
; CHECK: call void @llvm.masked.store.v32f32.p0(<32 x float> %{{.*}}, ptr %{{.*}}, i32 4, <32 x i1> %[[MASK]])
; CHECK-NEXT: br label %join
define void @masked_store(ptr %x, ptr %y, float %limit, i32 %lanes) {
entry:
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %x, i32 %lane
  %v = load float, ptr %from
  %c = fcmp ogt float %v, %limit
  br i1 %c, label %then, label %join
then:
  %to = getelementptr float, ptr %y, i32 %lane
  store float %v, ptr %to
  br label %join
join:
  ret void
}
