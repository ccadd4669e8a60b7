; Simdgroups read what others have written, combine it and write to the same memory without a barrier. On the CPU one
; runs after the other: the second would read what the first has just written. The collective gets a barrier before
; it, with its line, 7.
; RUN: kiln-opt --passes=reuse-barriers %s | FileCheck %s

declare void @__kiln_threadgroup_barrier(i32)
declare i64 @__kiln_exchange(i32, i32, i32, ptr, i64, i64, i64)
declare i32 @__kiln_value(i32)

@shared = internal global [32 x i64] poison, section "kiln.threadgroup"
@other = internal global [32 x i64] poison, section "kiln.threadgroup"

; CHECK-LABEL: @largest(
; CHECK: %others = load i64, ptr @shared
; CHECK-NEXT: call void @__kiln_threadgroup_barrier(i32 7)
; CHECK-NEXT: %largest = call i64 @__kiln_exchange(i32 7
define void @largest(ptr %data, i64 %number) {
  %index = call i32 @__kiln_value(i32 18)
  %own = getelementptr i64, ptr @shared, i32 %index
  store i64 %number, ptr %own
  call void @__kiln_threadgroup_barrier(i32 5)
  %others = load i64, ptr @shared
  %largest = call i64 @__kiln_exchange(i32 7, i32 3, i32 32, ptr null, i64 0, i64 %others, i64 0)
  %target = getelementptr i64, ptr @shared, i32 %index
  store i64 %largest, ptr %target
  ret void
}
