; What a pass takes for granted is tested before it runs, in kiln-opt as in every compilation that verifies its passes.
; Each of these orders would compile wrong code, or lose a convergence point, without a word.
; RUN: not kiln-opt --passes=convergence-points,inline --function=mark %s 2>&1 | FileCheck %s --check-prefix=INLINE
; RUN: not kiln-opt --passes=lane-collectives --function=collective %s 2>&1 | FileCheck %s --check-prefix=NUMBERS
; RUN: not kiln-opt --passes=sink-stores --function=branches %s 2>&1 | FileCheck %s --check-prefix=SWITCH
; RUN: not kiln-opt --passes=components --function=mask %s 2>&1 | FileCheck %s --check-prefix=MASK
; RUN: not kiln-opt --passes=bounds-guards --function=guarded %s 2>&1 | FileCheck %s --check-prefix=GUARD
; RUN: not kiln-opt --passes=suspend-points --function=lane %s 2>&1 | FileCheck %s --check-prefix=LANE
; RUN: not kiln-opt --passes=simdgroup-masks --function=index %s 2>&1 | FileCheck %s --check-prefix=INDEX

; INLINE: kiln-opt: the pass inline takes for granted that convergence points have no numbers yet
; NUMBERS: kiln-opt: the pass lane-collectives takes for granted that convergence points have numbers, and loops no marks
; SWITCH: kiln-opt: the pass sink-stores takes for granted that branches have two successors at most
; MASK: kiln-opt: the pass components takes for granted that no masks of collectives are left
; GUARD: kiln-opt: the pass bounds-guards takes for granted that no access has a bounds guard yet
; LANE: kiln-opt: the pass suspend-points takes for granted that no lane is computed by itself any more
; INDEX: kiln-opt: the pass simdgroup-masks takes for granted that a thread's index is its simdgroup's and its lane

@__kiln_zeros.64 = internal constant [64 x i8] zeroinitializer, align 64

declare i64 @__kiln_exchange(i32, i32, i32, ptr, i64, i64, i64) convergent
declare void @__kiln_threadgroup_barrier(i32) convergent
declare void @__kiln_mask(i32) convergent
declare i32 @__kiln_lane()
declare i32 @__kiln_value(i32)

define void @mark() {
  call void @__kiln_threadgroup_barrier(i32 1) convergent
  ret void
}

define i64 @collective(i64 %value) {
  %r = call i64 @__kiln_exchange(i32 1, i32 2, i32 32, ptr null, i64 0, i64 %value, i64 0) convergent
  ret i64 %r
}

define void @branches(i32 %x) {
  switch i32 %x, label %b [
    i32 0, label %a
    i32 1, label %b
  ]
a:
  br label %b
b:
  ret void
}

define void @mask(i32 %lanes) {
  call void @__kiln_mask(i32 %lanes) convergent
  ret void
}

define i32 @guarded(ptr %p, i1 %inside) {
  %guarded = select i1 %inside, ptr %p, ptr @__kiln_zeros.64
  %value = load i32, ptr %guarded
  ret i32 %value
}

define i32 @lane(ptr %launch, ptr %record, ptr %frame) {
  %lane = call i32 @__kiln_lane()
  ret i32 %lane
}

define i32 @index() {
  %index = call i32 @__kiln_value(i32 18)
  ret i32 %index
}
