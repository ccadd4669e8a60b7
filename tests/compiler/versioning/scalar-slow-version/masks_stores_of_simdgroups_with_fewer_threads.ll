; All lanes compute. A full simdgroup stores to the address, one with fewer threads to a variable, and from there under a
; mask. Stores that had a mask are narrowed; those to a variable of the function's own stay.
; RUN: kiln-opt --passes=scalar-slow-version %s | FileCheck %s

; CHECK: ; group.whole: yes
; CHECK-LABEL: define internal i1 @group.whole(
; CHECK: %[[FEW:.*]] = alloca <32 x float>
; CHECK: %[[MASK:.*]] = icmp ult <32 x i32> <i32 0, i32 1, {{.*}} i32 31>, %
; CHECK: %[[FULL:.*]] = icmp eq i32 %lanes, 32
; CHECK: %v = load <32 x float>, ptr %p
; CHECK: store <32 x float> %v, ptr %own
; CHECK: %[[TO:.*]] = select i1 %[[FULL]], ptr %to, ptr %[[FEW]]
; CHECK: store <32 x float> %v, ptr %[[TO]]
; CHECK: br i1
; CHECK: %[[STORED:.*]] = load <32 x float>, ptr %[[FEW]]
; CHECK: call void @llvm.masked.store.v32f32.p0(<32 x float> %[[STORED]], ptr %to, i32 4, <32 x i1> %[[MASK]])
; CHECK: %[[BOTH:.*]] = select <32 x i1> %[[MASK]], <32 x i1> %positive, <32 x i1> zeroinitializer
; CHECK: call void @llvm.masked.store.v32f32.p0(<32 x float> %v, ptr %other, i32 4, <32 x i1> %[[BOTH]])
define internal i1 @group.whole(ptr %launch, ptr %first, i32 %half, i32 %row, i32 %x, i32 %lanes) {
entry:
  %p = load ptr, ptr %launch, !invariant.load !0
  %limit = load i64, ptr %first, !invariant.load !0
  %own = alloca <32 x float>
  %offset = zext i32 %x to i64
  %inside = icmp ult i64 %offset, %limit
  br i1 %inside, label %in, label %out
in:
  %v = load <32 x float>, ptr %p
  store <32 x float> %v, ptr %own
  %to = getelementptr float, ptr %p, i64 128
  store <32 x float> %v, ptr %to, align 4, !kiln.of-lanes !0
  %positive = fcmp ogt <32 x float> %v, zeroinitializer
  %other = getelementptr float, ptr %p, i64 256
  call void @llvm.masked.store.v32f32.p0(<32 x float> %v, ptr %other, i32 4, <32 x i1> %positive), !kiln.of-lanes !0
  ret i1 true
out:
  ret i1 false
}

declare void @llvm.masked.store.v32f32.p0(<32 x float>, ptr, i32, <32 x i1>)

!0 = !{}
