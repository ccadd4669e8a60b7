; The border is whose the table is: one that a second function reads as well cannot be a variable of the first, and
; stays. A table of one function only, even where it is used through a constant address, becomes its variable.
; RUN: kiln-opt --passes=threadgroup-pointer-tables %s | FileCheck %s

@shared = internal global [16 x float] undef, section "kiln.threadgroup", align 16

; CHECK: @common = internal constant [2 x ptr] [ptr @shared, ptr @shared]
; CHECK-NOT: @own
@common = internal constant [2 x ptr] [ptr @shared, ptr @shared]
@own = internal constant [2 x ptr] [ptr @shared, ptr @shared]

; CHECK-LABEL: define ptr @body(
; CHECK: [[OWN:%.*]] = alloca [2 x ptr]
; CHECK-NOT: alloca
; CHECK: %p = load ptr, ptr @common
; CHECK: [[SLOT:%.*]] = getelementptr {{.*}}, ptr [[OWN]],
; CHECK: %q = load ptr, ptr [[SLOT]]
define ptr @body(i1 %c) {
  %p = load ptr, ptr @common
  %q = load ptr, ptr getelementptr (i8, ptr @own, i64 8)
  %r = select i1 %c, ptr %p, ptr %q
  ret ptr %r
}

; CHECK-LABEL: define ptr @other(
; CHECK-NOT: alloca
; CHECK: ret ptr
define ptr @other() {
  %p = load ptr, ptr @common
  ret ptr %p
}
