; What is read before the collective is not written after it: another variable of the threadgroup's is, or the
; kernel's output. Nor does a kernel that has no barrier at all get one: it does not pass values between simdgroups.
; RUN: kiln-opt --passes=reuse-barriers %s | FileCheck %s

declare void @__kiln_threadgroup_barrier(i32)
declare i64 @__kiln_exchange(i32, i32, i32, ptr, i64, i64, i64)
declare i32 @__kiln_value(i32)

@shared = internal global [32 x i64] poison, section "kiln.threadgroup"
@other = internal global [32 x i64] poison, section "kiln.threadgroup"

; CHECK-LABEL: @another_variable(
; CHECK: %others = load
; CHECK-NEXT: %largest = call
; CHECK-NOT: @__kiln_threadgroup_barrier
; CHECK: ret void
define void @another_variable(ptr %data, i64 %number) {
  %index = call i32 @__kiln_value(i32 18)
  %own = getelementptr i64, ptr @shared, i32 %index
  store i64 %number, ptr %own
  call void @__kiln_threadgroup_barrier(i32 5)
  %others = load i64, ptr @shared
  %largest = call i64 @__kiln_exchange(i32 7, i32 3, i32 32, ptr null, i64 0, i64 %others, i64 0)
  %target = getelementptr i64, ptr @other, i32 %index
  store i64 %largest, ptr %target
  ret void
}

; CHECK-LABEL: @an_output(
; CHECK: %others = load
; CHECK-NEXT: %largest = call
; CHECK-NOT: @__kiln_threadgroup_barrier
; CHECK: ret void
define void @an_output(ptr %data, i64 %number) {
  %index = call i32 @__kiln_value(i32 18)
  %own = getelementptr i64, ptr @shared, i32 %index
  store i64 %number, ptr %own
  call void @__kiln_threadgroup_barrier(i32 5)
  %others = load i64, ptr @shared
  %largest = call i64 @__kiln_exchange(i32 7, i32 3, i32 32, ptr null, i64 0, i64 %others, i64 0)
  %target = getelementptr i64, ptr %data, i32 %index
  store i64 %largest, ptr %target
  ret void
}

; CHECK-LABEL: @without_barriers(
; CHECK-NOT: @__kiln_threadgroup_barrier
; CHECK: ret void
define void @without_barriers(ptr %data, i64 %number) {
  %index = call i32 @__kiln_value(i32 18)
  %own = getelementptr i64, ptr @shared, i32 %index
  %others = load i64, ptr @shared
  %largest = call i64 @__kiln_exchange(i32 7, i32 3, i32 32, ptr null, i64 0, i64 %others, i64 0)
  %target = getelementptr i64, ptr @shared, i32 %index
  store i64 %largest, ptr %target
  ret void
}
