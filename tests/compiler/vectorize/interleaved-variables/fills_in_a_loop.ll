; The first value of many elements is stored in a loop, whatever the array's size; that of a few element by element.
; RUN: kiln-opt --passes=interleaved-variables %s | FileCheck %s

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; CHECK-LABEL: define float @table(
; CHECK: alloca [25600 x i8], align 64
; CHECK: %[[OWN:.*]] = getelementptr i8, ptr %{{.*}}, i64 %{{.*}}
; CHECK: br label %[[FILL:.*]]
; CHECK: [[FILL]]:
; CHECK: %[[I:.*]] = phi i64 [ 0, %{{.*}} ], [ %[[NEXT:.*]], %[[FILL]] ]
; CHECK: %[[OFFSET:.*]] = mul i64 %[[I]], 128
; CHECK: %[[TO:.*]] = getelementptr i8, ptr %[[OWN]], i64 %[[OFFSET]]
; CHECK: store i32 0, ptr %[[TO]], align 4
; CHECK: %[[NEXT]] = add nuw nsw i64 %[[I]], 1
; CHECK: %[[IS_LAST:.*]] = icmp eq i64 %[[NEXT]], 200
; CHECK: br i1 %[[IS_LAST]], label %{{.*}}, label %[[FILL]], !llvm.loop [[ONCE:![0-9]+]]
; CHECK-NOT: memset
; CHECK: ret float
define float @table(i64 %i) {
  %w = alloca [200 x float], align 4
  call void @llvm.memset.p0.i64(ptr %w, i8 0, i64 800, i1 false)
  %at = getelementptr float, ptr %w, i64 %i
  %r = load float, ptr %at
  ret float %r
}

; CHECK-LABEL: define float @few(
; CHECK-COUNT-8: store i32 0
; CHECK-NOT: store
; CHECK: ret float
define float @few(i64 %i) {
  %w = alloca [8 x float], align 4
  call void @llvm.memset.p0.i64(ptr %w, i8 0, i64 32, i1 false)
  %at = getelementptr float, ptr %w, i64 %i
  %r = load float, ptr %at
  ret float %r
}

; The second variable is one of the first block still, where all of them are before any loop.
; CHECK-LABEL: define float @two(
; CHECK: alloca [2048 x i8], align 64
; CHECK: alloca [4096 x i8], align 64
; CHECK: br label
; CHECK-NOT: alloca
; CHECK: ret float
define float @two(i64 %i) {
  %w = alloca [16 x float], align 4
  call void @llvm.memset.p0.i64(ptr %w, i8 0, i64 64, i1 false)
  %v = alloca [32 x float], align 4
  call void @llvm.memset.p0.i64(ptr %v, i8 0, i64 128, i1 false)
  %at = getelementptr float, ptr %w, i64 %i
  %a = load float, ptr %at
  %to = getelementptr float, ptr %v, i64 %i
  %b = load float, ptr %to
  %r = fadd float %a, %b
  ret float %r
}

; CHECK: [[ONCE]] = distinct !{[[ONCE]], [[DISABLE:![0-9]+]]}
; CHECK: [[DISABLE]] = !{!"llvm.loop.unroll.disable"}
