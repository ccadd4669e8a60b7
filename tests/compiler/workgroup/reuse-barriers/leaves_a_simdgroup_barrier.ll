; At a collective that yields no value (kind 0) a simdgroup only synchronizes to reuse memory of its own. One of any
; other kind gets a barrier.
; RUN: kiln-opt --passes=reuse-barriers %s | FileCheck %s

declare void @__kiln_threadgroup_barrier(i32)
declare i64 @__kiln_exchange(i32, i32, i32, ptr, i64, i64, i64)
declare i32 @__kiln_value(i32)

@shared = internal global [32 x i64] poison, section "kiln.threadgroup"
@other = internal global [32 x i64] poison, section "kiln.threadgroup"

; CHECK-LABEL: @only_waits(
; CHECK: %others = load
; CHECK-NEXT: %largest = call
; CHECK-NOT: @__kiln_threadgroup_barrier
; CHECK: ret void
define void @only_waits(ptr %data, i64 %number) {
  %index = call i32 @__kiln_value(i32 18)
  %own = getelementptr i64, ptr @shared, i32 %index
  store i64 %number, ptr %own
  call void @__kiln_threadgroup_barrier(i32 5)
  %others = load i64, ptr @shared
  %largest = call i64 @__kiln_exchange(i32 7, i32 0, i32 32, ptr null, i64 0, i64 %others, i64 0)
  %target = getelementptr i64, ptr @shared, i32 %index
  store i64 %largest, ptr %target
  ret void
}

; CHECK-LABEL: @shuffles(
; CHECK: %others = load
; CHECK-NEXT: call void @__kiln_threadgroup_barrier(i32 7)
; CHECK-NEXT: %largest = call
define void @shuffles(ptr %data, i64 %number) {
  %index = call i32 @__kiln_value(i32 18)
  %own = getelementptr i64, ptr @shared, i32 %index
  store i64 %number, ptr %own
  call void @__kiln_threadgroup_barrier(i32 5)
  %others = load i64, ptr @shared
  %largest = call i64 @__kiln_exchange(i32 7, i32 1, i32 32, ptr null, i64 0, i64 %others, i64 0)
  %target = getelementptr i64, ptr @shared, i32 %index
  store i64 %largest, ptr %target
  ret void
}
