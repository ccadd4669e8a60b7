; Only some threads of the threadgroup come to this collective, by their index, while the others go on to the next
; one: a barrier before it would wait for ever. Threads that return instead need not be waited for, and a branch on
; the threadgroup's position takes all of its threads along.
; RUN: kiln-opt --passes=reuse-barriers %s | FileCheck %s

declare void @__kiln_threadgroup_barrier(i32)
declare i64 @__kiln_exchange(i32, i32, i32, ptr, i64, i64, i64)
declare i32 @__kiln_value(i32)

@shared = internal global [32 x i64] poison, section "kiln.threadgroup"
@other = internal global [32 x i64] poison, section "kiln.threadgroup"

; CHECK-LABEL: @first_simdgroup(
; CHECK: %others = load
; CHECK-NEXT: %largest = call
; CHECK-NOT: @__kiln_threadgroup_barrier
; CHECK: ret void
define void @first_simdgroup(ptr %data, i64 %number) {
  %index = call i32 @__kiln_value(i32 18)
  %own = getelementptr i64, ptr @shared, i32 %index
  store i64 %number, ptr %own
  call void @__kiln_threadgroup_barrier(i32 5)
  %position = call i32 @__kiln_value(i32 18)
  %is_first = icmp ult i32 %position, 32
  br i1 %is_first, label %first, label %end
first:
  %others = load i64, ptr @shared
  %largest = call i64 @__kiln_exchange(i32 7, i32 3, i32 32, ptr null, i64 0, i64 %others, i64 0)
  store i64 %largest, ptr %own
  br label %end
end:
  %sum = call i64 @__kiln_exchange(i32 8, i32 3, i32 32, ptr null, i64 0, i64 %number, i64 0)
  store i64 %sum, ptr %data
  ret void
}

; CHECK-LABEL: @others_return(
; CHECK: %others = load
; CHECK-NEXT: call void @__kiln_threadgroup_barrier(i32 7)
; CHECK-NEXT: %largest = call
define void @others_return(ptr %data, i64 %number) {
  %index = call i32 @__kiln_value(i32 18)
  %own = getelementptr i64, ptr @shared, i32 %index
  store i64 %number, ptr %own
  call void @__kiln_threadgroup_barrier(i32 5)
  %position = call i32 @__kiln_value(i32 18)
  %is_first = icmp ult i32 %position, 32
  br i1 %is_first, label %first, label %end
first:
  %others = load i64, ptr @shared
  %largest = call i64 @__kiln_exchange(i32 7, i32 3, i32 32, ptr null, i64 0, i64 %others, i64 0)
  store i64 %largest, ptr %own
  br label %end
end:
  ret void
}

; CHECK-LABEL: @first_threadgroup(
; CHECK: %others = load
; CHECK-NEXT: call void @__kiln_threadgroup_barrier(i32 7)
; CHECK-NEXT: %largest = call
define void @first_threadgroup(ptr %data, i64 %number) {
  %index = call i32 @__kiln_value(i32 18)
  %own = getelementptr i64, ptr @shared, i32 %index
  store i64 %number, ptr %own
  call void @__kiln_threadgroup_barrier(i32 5)
  %position = call i32 @__kiln_value(i32 3)
  %is_first = icmp ult i32 %position, 32
  br i1 %is_first, label %first, label %end
first:
  %others = load i64, ptr @shared
  %largest = call i64 @__kiln_exchange(i32 7, i32 3, i32 32, ptr null, i64 0, i64 %others, i64 0)
  store i64 %largest, ptr %own
  br label %end
end:
  %sum = call i64 @__kiln_exchange(i32 8, i32 3, i32 32, ptr null, i64 0, i64 %number, i64 0)
  store i64 %sum, ptr %data
  ret void
}
