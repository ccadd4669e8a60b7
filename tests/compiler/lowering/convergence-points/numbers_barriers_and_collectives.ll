; Each barrier and collective becomes a call with a number, in the order in which the function's blocks come: a barrier
; exchanges nothing, a collective keeps its value and operand. A collective need not order memory, a barrier does.
; RUN: kiln-opt --passes=convergence-points %s | FileCheck %s

declare void @__kiln_threadgroup_barrier(i32) convergent
declare i64 @__kiln_exchange(i32, i32, i32, ptr, i64, i64, i64) convergent

; CHECK-LABEL: define i64 @straight_line(
; CHECK-NEXT: call i64 @__kiln_wait0(i32 0, i64 0, i64 0){{$}}
; CHECK-NEXT: %[[SHUFFLED:.*]] = call i64 @__kiln_wait0(i32 1, i64 %value, i64 3) #[[ORDERED:[0-9]+]]
; CHECK-NEXT: call i64 @__kiln_wait0(i32 2, i64 0, i64 0){{$}}
; CHECK-NEXT: ret i64 %[[SHUFFLED]]
define i64 @straight_line(i64 %value) {
  call void @__kiln_threadgroup_barrier(i32 1) convergent
  %shuffled = call i64 @__kiln_exchange(i32 2, i32 1, i32 32, ptr null, i64 0, i64 %value, i64 3) convergent
  call void @__kiln_threadgroup_barrier(i32 3) convergent
  ret i64 %shuffled
}

; The calls are convergent and return.
; CHECK: declare i64 @__kiln_wait0(i32, i64, i64) #[[WAIT:[0-9]+]]
; CHECK-DAG: attributes #[[WAIT]] = { convergent nounwind willreturn }
; CHECK-DAG: attributes #[[ORDERED]] = { memory(inaccessiblemem: readwrite) }
