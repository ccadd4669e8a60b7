; A loop over two halves pays off where enough is the same for both: 16 instructions computed from the multiple of 64,
; of which a store is one. Fewer cost less than the loop.
; RUN: kiln-opt --passes=thread-coarsening %s | FileCheck %s
; RUN: kiln-opt --passes=thread-coarsening --remarks %s 2>&1 | FileCheck %s --check-prefix=REMARK

; REMARK: remark: thread-coarsening: two simdgroups would share 15 instructions, and fewer than 16 are not worth a loop over the two
; REMARK-NOT: remark:

declare i32 @__kiln_piece()
declare i32 @__kiln_lane()

; CHECK: enough: halves share work
; CHECK: one_less: halves share no work
define void @enough(ptr %launch, ptr %record, i32 %half_offset, i32 %row, i32 %x, ptr %out) {
  %value1 = mul i32 %x, 3
  %value2 = mul i32 %value1, 5
  %value3 = mul i32 %value2, 7
  %value4 = mul i32 %value3, 9
  %value5 = mul i32 %value4, 11
  %value6 = mul i32 %value5, 13
  %value7 = mul i32 %value6, 15
  %value8 = mul i32 %value7, 17
  %value9 = mul i32 %value8, 19
  %value10 = mul i32 %value9, 21
  %value11 = mul i32 %value10, 23
  %value12 = mul i32 %value11, 25
  %value13 = mul i32 %value12, 27
  %value14 = mul i32 %value13, 29
  %value15 = mul i32 %value14, 31
  store i32 %value15, ptr %out
  ret void
}

define void @one_less(ptr %launch, ptr %record, i32 %half_offset, i32 %row, i32 %x, ptr %out) {
  %value1 = mul i32 %x, 3
  %value2 = mul i32 %value1, 5
  %value3 = mul i32 %value2, 7
  %value4 = mul i32 %value3, 9
  %value5 = mul i32 %value4, 11
  %value6 = mul i32 %value5, 13
  %value7 = mul i32 %value6, 15
  %value8 = mul i32 %value7, 17
  %value9 = mul i32 %value8, 19
  %value10 = mul i32 %value9, 21
  %value11 = mul i32 %value10, 23
  %value12 = mul i32 %value11, 25
  %value13 = mul i32 %value12, 27
  %value14 = mul i32 %value13, 29
  store i32 %value14, ptr %out
  ret void
}
