; A barrier of the kernel's own between the collective and the new write, or between the read and the collective,
; makes another one needless.
; RUN: kiln-opt --passes=reuse-barriers %s | FileCheck %s

declare void @__kiln_threadgroup_barrier(i32)
declare i64 @__kiln_exchange(i32, i32, i32, ptr, i64, i64, i64)
declare i32 @__kiln_value(i32)

@shared = internal global [32 x i64] poison, section "kiln.threadgroup"
@other = internal global [32 x i64] poison, section "kiln.threadgroup"

; CHECK-LABEL: @after_the_collective(
; CHECK: %others = load
; CHECK-NEXT: %largest = call
; CHECK-NEXT: call void @__kiln_threadgroup_barrier(i32 9)
; CHECK-NOT: @__kiln_threadgroup_barrier
; CHECK: ret void
define void @after_the_collective(ptr %data, i64 %number) {
  %index = call i32 @__kiln_value(i32 18)
  %own = getelementptr i64, ptr @shared, i32 %index
  store i64 %number, ptr %own
  call void @__kiln_threadgroup_barrier(i32 5)
  %others = load i64, ptr @shared
  %largest = call i64 @__kiln_exchange(i32 7, i32 3, i32 32, ptr null, i64 0, i64 %others, i64 0)
  call void @__kiln_threadgroup_barrier(i32 9)
  %target = getelementptr i64, ptr @shared, i32 %index
  store i64 %largest, ptr %target
  ret void
}

; CHECK-LABEL: @before_the_collective(
; CHECK: %others = load
; CHECK-NEXT: call void @__kiln_threadgroup_barrier(i32 9)
; CHECK-NEXT: %largest = call
; CHECK-NOT: @__kiln_threadgroup_barrier
; CHECK: ret void
define void @before_the_collective(ptr %data, i64 %number) {
  %index = call i32 @__kiln_value(i32 18)
  %own = getelementptr i64, ptr @shared, i32 %index
  store i64 %number, ptr %own
  call void @__kiln_threadgroup_barrier(i32 5)
  %others = load i64, ptr @shared
  call void @__kiln_threadgroup_barrier(i32 9)
  %largest = call i64 @__kiln_exchange(i32 7, i32 3, i32 32, ptr null, i64 0, i64 %others, i64 0)
  %target = getelementptr i64, ptr @shared, i32 %index
  store i64 %largest, ptr %target
  ret void
}
