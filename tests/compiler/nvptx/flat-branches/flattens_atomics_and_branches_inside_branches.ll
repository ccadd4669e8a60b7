; An atomic whose old value is not used becomes a predicated one. An inner branch goes first, and its predicate becomes
; part of the outer one's.
; RUN: kiln-opt --passes=flat-branches %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer, align 64
@__kiln_sink = external global [64 x i8], align 16

; CHECK-LABEL: @counts(
; CHECK-NOT: br
; CHECK: call void asm sideeffect "@$0 red.global.add.u32 [$1], $2;", "b,l,r,~{memory}"(i1 %taken, ptr addrspace(1) %p, i32 1)
; CHECK-NEXT: ret void
define void @counts(ptr addrspace(1) %p, i1 %taken) {
entry:
  br i1 %taken, label %then, label %end
then:
  %old = atomicrmw add ptr addrspace(1) %p, i32 1 monotonic
  br label %end
end:
  ret void
}

; CHECK-LABEL: @nested(
; CHECK-NOT: br
; CHECK: %[[BOTH:.*]] = select i1 %outer, i1 %inner, i1 false
; CHECK: call void asm sideeffect "@$0 red.global.add.f32 [$1], $2;", "b,l,f,~{memory}"(i1 %[[BOTH]], ptr addrspace(1) %p, float %x)
; CHECK-NEXT: ret void
define void @nested(ptr addrspace(1) %p, i1 %outer, float %x, i32 %i) {
entry:
  br i1 %outer, label %then, label %end
then:
  %inner = icmp eq i32 %i, 0
  br i1 %inner, label %inside, label %rest
inside:
  %old = atomicrmw fadd ptr addrspace(1) %p, float %x monotonic
  br label %rest
rest:
  br label %end
end:
  ret void
}
