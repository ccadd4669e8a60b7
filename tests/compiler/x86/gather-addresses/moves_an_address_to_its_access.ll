; An address that two blocks share is computed in each of them, from a base and one vector of indices. Of an array in
; memory the first index, which is 0, goes away.
; RUN: kiln-opt --passes=gather-addresses %s | FileCheck %s

declare <4 x float> @llvm.masked.gather.v4f32.v4p0(<4 x ptr>, i32, <4 x i1>, <4 x float>)
declare void @llvm.masked.scatter.v4f32.v4p0(<4 x float>, <4 x ptr>, i32, <4 x i1>)

; CHECK-LABEL: define void @both(
; CHECK: %[[A:.*]] = getelementptr i32, ptr %x, <4 x i64> %i
; CHECK-NEXT: call <4 x float> @llvm.masked.gather.v4f32.v4p0(<4 x ptr> %[[A]]
; CHECK: next:
; CHECK-NEXT: %[[B:.*]] = getelementptr i32, ptr %x, <4 x i64> %i
; CHECK-NEXT: call void @llvm.masked.scatter.v4f32.v4p0(<4 x float> %v, <4 x ptr> %[[B]]
define void @both(ptr %x, <4 x i64> %i, <4 x i1> %mask) {
  %at = getelementptr [1024 x float], ptr %x, i64 0, <4 x i64> %i
  %v = call <4 x float> @llvm.masked.gather.v4f32.v4p0(<4 x ptr> %at, i32 4, <4 x i1> %mask, <4 x float> zeroinitializer)
  br label %next
next:
  call void @llvm.masked.scatter.v4f32.v4p0(<4 x float> %v, <4 x ptr> %at, i32 4, <4 x i1> %mask)
  ret void
}
