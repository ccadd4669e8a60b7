; An atomic outside must not happen at all, so it gets a branch; its result is that of memory that holds zero. A
; compare-exchange then succeeds if it expects zero: a loop around one that never succeeded would not end.
; RUN: kiln-opt --passes=bounds-guards --parameters=in:4,out:4 %s | FileCheck %s

; CHECK-LABEL: define i32 @update(
; CHECK: [[STARTS:%.*]] = call i64 @llvm.usub.sat.i64(i64 %out_bytes, i64 3)
; CHECK: [[IS_IN:%.*]] = icmp ult i64 {{.*}}, [[STARTS]]
; CHECK: br i1 [[IS_IN]], label %[[INSIDE:.*]], label %[[AFTER:.*]]
; CHECK: [[INSIDE]]:
; CHECK-NEXT: %old = atomicrmw add ptr %a, i32 1 monotonic
; CHECK: [[AFTER]]:
; CHECK-NEXT: [[RESULT:%.*]] = phi i32 [ %old, %[[INSIDE]] ], [ 0, %entry ]
; CHECK-NEXT: ret i32 [[RESULT]]
define i32 @update(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out,
             i64 %out_first, i64 %out_bytes, ptr %thread, i64 %i) {
entry:
  %a = getelementptr i32, ptr %out, i64 %i
  %old = atomicrmw add ptr %a, i32 1 monotonic
  ret i32 %old
}

; CHECK-LABEL: define i1 @exchange(
; CHECK: [[SUCCEEDS:%.*]] = icmp eq i32 %expected, 0
; CHECK: [[OUTSIDE:%.*]] = insertvalue { i32, i1 } zeroinitializer, i1 [[SUCCEEDS]], 1
; CHECK: br i1
; CHECK: cmpxchg ptr %a, i32 %expected, i32 %new
; CHECK: phi { i32, i1 } [ %result, %{{.*}} ], [ [[OUTSIDE]], %entry ]
define i1 @exchange(ptr %in, i64 %in_first, i64 %in_bytes, ptr %out,
             i64 %out_first, i64 %out_bytes, ptr %thread, i64 %i, i32 %expected, i32 %new) {
entry:
  %a = getelementptr i32, ptr %out, i64 %i
  %result = cmpxchg ptr %a, i32 %expected, i32 %new monotonic monotonic
  %done = extractvalue { i32, i1 } %result, 1
  ret i1 %done
}
