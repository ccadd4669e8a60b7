; A short branch around guarded accesses goes: the guards get its condition as well, and all threads compute the rest.
; The guard's own condition may be poison where the branch is not taken, so the two are joined by a select, not by
; `and`.
; RUN: kiln-opt --passes=flat-branches %s | FileCheck %s
; RUN: kiln-opt --passes=flat-branches,predicated-accesses %s | FileCheck %s --check-prefix=PTX
target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer, align 64
@__kiln_sink = external global [64 x i8], align 16

; CHECK-LABEL: @then(
; CHECK-NOT: br
; CHECK: %doubled = fmul float
; CHECK: %[[BOTH:.*]] = select i1 %taken, i1 %inside, i1 false
; CHECK: %guarded = select i1 %[[BOTH]], ptr %address, ptr @__kiln_sink
; CHECK-NEXT: store float %doubled, ptr %guarded
; CHECK-NEXT: ret void
; PTX-LABEL: @then(
; PTX: call void asm sideeffect "@$0 st.b32 [$1], $2;"
define void @then(ptr %out, i64 %i, i64 %count, float %x, i1 %taken) {
entry:
  br i1 %taken, label %then, label %end
then:
  %doubled = fmul float %x, 2.0
  %inside = icmp ult i64 %i, %count
  %address = getelementptr float, ptr %out, i64 %i
  %guarded = select i1 %inside, ptr %address, ptr @__kiln_sink
  store float %doubled, ptr %guarded
  br label %end
end:
  ret void
}

; The side is taken where the condition does not hold, and a phi chooses between its value and another.
; CHECK-LABEL: @otherwise(
; CHECK-NOT: br
; CHECK: %[[NOT:.*]] = xor i1 %skipped, true
; CHECK: %[[BOTH:.*]] = select i1 %[[NOT]], i1 %inside, i1 false
; CHECK: %guarded = select i1 %[[BOTH]], ptr %address, ptr @__kiln_zeros.64
; CHECK-NEXT: %value = load float, ptr %guarded
; CHECK: %[[RESULT:.*]] = select i1 %[[NOT]], float %value, float 1.0
; CHECK: ret float %[[RESULT]]
define float @otherwise(ptr %in, i64 %i, i64 %count, i1 %skipped) {
entry:
  br i1 %skipped, label %end, label %side
side:
  %inside = icmp ult i64 %i, %count
  %address = getelementptr float, ptr %in, i64 %i
  %guarded = select i1 %inside, ptr %address, ptr @__kiln_zeros.64
  %value = load float, ptr %guarded
  br label %end
end:
  %result = phi float [ 1.0, %entry ], [ %value, %side ]
  ret float %result
}
