; These branches must stay. All threads would do the access: it has no guard, or is volatile; the atomic's old value is
; used, or PTX has no such atomic; or the guard is of another use as well. A call and a division may not be executed at
; all.
; RUN: kiln-opt --passes=flat-branches %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer, align 64
@__kiln_sink = external global [64 x i8], align 16
declare void @effect()
declare void @use(ptr)

; CHECK-LABEL: @no_guard(
; CHECK: br i1 %taken, label %then, label %end
; CHECK: then:
define void @no_guard(ptr %p, ptr addrspace(1) %global, ptr %guard.in, i1 %inside, i32 %x, i1 %taken) {
entry:
  br i1 %taken, label %then, label %end
then:
  store i32 %x, ptr %p
  br label %end
end:
  ret void
}

; CHECK-LABEL: @volatile(
; CHECK: br i1 %taken, label %then, label %end
; CHECK: then:
define void @volatile(ptr %p, ptr addrspace(1) %global, ptr %guard.in, i1 %inside, i32 %x, i1 %taken) {
entry:
  br i1 %taken, label %then, label %end
then:
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_sink
  store volatile i32 %x, ptr %guarded
  br label %end
end:
  ret void
}

; CHECK-LABEL: @old_value(
; CHECK: br i1 %taken, label %then, label %end
; CHECK: then:
define void @old_value(ptr %p, ptr addrspace(1) %global, ptr %guard.in, i1 %inside, i32 %x, i1 %taken) {
entry:
  br i1 %taken, label %then, label %end
then:
  %old = atomicrmw add ptr addrspace(1) %global, i32 1 monotonic
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_sink
  store i32 %old, ptr %guarded
  br label %end
end:
  ret void
}

; CHECK-LABEL: @ordered(
; CHECK: br i1 %taken, label %then, label %end
; CHECK: then:
define void @ordered(ptr %p, ptr addrspace(1) %global, ptr %guard.in, i1 %inside, i32 %x, i1 %taken) {
entry:
  br i1 %taken, label %then, label %end
then:
  %old = atomicrmw add ptr addrspace(1) %global, i32 1 seq_cst
  br label %end
end:
  ret void
}

; CHECK-LABEL: @no_such_atomic(
; CHECK: br i1 %taken, label %then, label %end
; CHECK: then:
define void @no_such_atomic(ptr %p, ptr addrspace(1) %global, ptr %guard.in, i1 %inside, i32 %x, i1 %taken) {
entry:
  br i1 %taken, label %then, label %end
then:
  %old = atomicrmw nand ptr addrspace(1) %global, i32 1 monotonic
  br label %end
end:
  ret void
}

; CHECK-LABEL: @guard_used_twice(
; CHECK: br i1 %taken, label %then, label %end
; CHECK: then:
define void @guard_used_twice(ptr %p, ptr addrspace(1) %global, ptr %guard.in, i1 %inside, i32 %x, i1 %taken) {
entry:
  br i1 %taken, label %then, label %end
then:
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_sink
  store i32 %x, ptr %guarded
  store i32 0, ptr %guarded
  br label %end
end:
  ret void
}

; CHECK-LABEL: @call(
; CHECK: br i1 %taken, label %then, label %end
; CHECK: then:
define void @call(ptr %p, ptr addrspace(1) %global, ptr %guard.in, i1 %inside, i32 %x, i1 %taken) {
entry:
  br i1 %taken, label %then, label %end
then:
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_sink
  store i32 %x, ptr %guarded
  call void @effect()
  br label %end
end:
  ret void
}

; CHECK-LABEL: @division(
; CHECK: br i1 %taken, label %then, label %end
; CHECK: then:
define void @division(ptr %p, ptr addrspace(1) %global, ptr %guard.in, i1 %inside, i32 %x, i1 %taken) {
entry:
  br i1 %taken, label %then, label %end
then:
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_sink
  %quotient = udiv i32 7, %x
  store i32 %quotient, ptr %guarded
  br label %end
end:
  ret void
}
