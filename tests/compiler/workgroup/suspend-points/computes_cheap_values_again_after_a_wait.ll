; What takes few instructions to compute from the arguments and from memory that does not change is computed again
; after the wait, and not kept: up to 24 instructions, which 25 exceed. An operation on floats, a division, or a load
; of what may change counts as dear at once.
; RUN: kiln-opt --passes=suspend-points %s | FileCheck %s

declare i64 @__kiln_wait(i32, i64, i64)
declare void @use(i32)

; CHECK: within_the_limit: frame of 0 bytes
; CHECK: beyond_the_limit: frame of 4 bytes
; CHECK: a_division: frame of 4 bytes
; CHECK: may_change: frame of 4 bytes

; CHECK-LABEL: @within_the_limit(
; CHECK: call void @use(i32 %value24)
; CHECK: ret void
; CHECK: load i32, ptr %record, align 4, !invariant.load
; CHECK-COUNT-23: xor i32
; CHECK: call void @use(
define void @within_the_limit(ptr %launch, ptr %record, ptr %frame) {
  %value1 = load i32, ptr %record, !invariant.load !0
  %value2 = xor i32 %value1, 2
  %value3 = xor i32 %value2, 3
  %value4 = xor i32 %value3, 4
  %value5 = xor i32 %value4, 5
  %value6 = xor i32 %value5, 6
  %value7 = xor i32 %value6, 7
  %value8 = xor i32 %value7, 8
  %value9 = xor i32 %value8, 9
  %value10 = xor i32 %value9, 10
  %value11 = xor i32 %value10, 11
  %value12 = xor i32 %value11, 12
  %value13 = xor i32 %value12, 13
  %value14 = xor i32 %value13, 14
  %value15 = xor i32 %value14, 15
  %value16 = xor i32 %value15, 16
  %value17 = xor i32 %value16, 17
  %value18 = xor i32 %value17, 18
  %value19 = xor i32 %value18, 19
  %value20 = xor i32 %value19, 20
  %value21 = xor i32 %value20, 21
  %value22 = xor i32 %value21, 22
  %value23 = xor i32 %value22, 23
  %value24 = xor i32 %value23, 24
  call void @use(i32 %value24)
  %result = call i64 @__kiln_wait(i32 0, i64 0, i64 0)
  call void @use(i32 %value24)
  ret void
}

define void @beyond_the_limit(ptr %launch, ptr %record, ptr %frame) {
  %value1 = load i32, ptr %record, !invariant.load !0
  %value2 = xor i32 %value1, 2
  %value3 = xor i32 %value2, 3
  %value4 = xor i32 %value3, 4
  %value5 = xor i32 %value4, 5
  %value6 = xor i32 %value5, 6
  %value7 = xor i32 %value6, 7
  %value8 = xor i32 %value7, 8
  %value9 = xor i32 %value8, 9
  %value10 = xor i32 %value9, 10
  %value11 = xor i32 %value10, 11
  %value12 = xor i32 %value11, 12
  %value13 = xor i32 %value12, 13
  %value14 = xor i32 %value13, 14
  %value15 = xor i32 %value14, 15
  %value16 = xor i32 %value15, 16
  %value17 = xor i32 %value16, 17
  %value18 = xor i32 %value17, 18
  %value19 = xor i32 %value18, 19
  %value20 = xor i32 %value19, 20
  %value21 = xor i32 %value20, 21
  %value22 = xor i32 %value21, 22
  %value23 = xor i32 %value22, 23
  %value24 = xor i32 %value23, 24
  %value25 = xor i32 %value24, 25
  call void @use(i32 %value25)
  %result = call i64 @__kiln_wait(i32 0, i64 0, i64 0)
  call void @use(i32 %value25)
  ret void
}

define void @a_division(ptr %launch, ptr %record, ptr %frame, i32 %x) {
  %quotient = udiv i32 100, %x
  call void @use(i32 %quotient)
  %result = call i64 @__kiln_wait(i32 0, i64 0, i64 0)
  call void @use(i32 %quotient)
  ret void
}

define void @may_change(ptr %launch, ptr %record, ptr %frame, i32 %x) {
  %value = load i32, ptr %launch
  call void @use(i32 %value)
  %result = call i64 @__kiln_wait(i32 0, i64 0, i64 0)
  call void @use(i32 %value)
  ret void
}

!0 = !{}
