; Each thread computes what differs between lanes by itself, and what is computed from other things than the position
; is the same anyway: neither counts.
; RUN: kiln-opt --passes=thread-coarsening %s | FileCheck %s

declare i32 @__kiln_piece()
declare i32 @__kiln_lane()

; CHECK: of_a_lane: halves share no work
; CHECK: of_the_launch: halves share no work
define void @of_a_lane(ptr %launch, ptr %record, i32 %half_offset, i32 %row, i32 %x, ptr %out) {
  %lane = call i32 @__kiln_lane()
  %position = add i32 %x, %lane
  %value1 = mul i32 %position, 3
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
  %value16 = mul i32 %value15, 33
  %value17 = mul i32 %value16, 35
  %value18 = mul i32 %value17, 37
  %value19 = mul i32 %value18, 39
  %value20 = mul i32 %value19, 41
  %value21 = mul i32 %value20, 43
  %value22 = mul i32 %value21, 45
  %value23 = mul i32 %value22, 47
  %value24 = mul i32 %value23, 49
  %value25 = mul i32 %value24, 51
  %value26 = mul i32 %value25, 53
  %value27 = mul i32 %value26, 55
  %value28 = mul i32 %value27, 57
  %value29 = mul i32 %value28, 59
  %value30 = mul i32 %value29, 61
  store i32 %value30, ptr %out
  ret void
}

define void @of_the_launch(ptr %launch, ptr %record, i32 %half_offset, i32 %row, i32 %x, ptr %out) {
  %value1 = mul i32 %row, 3
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
  %value16 = mul i32 %value15, 33
  %value17 = mul i32 %value16, 35
  %value18 = mul i32 %value17, 37
  %value19 = mul i32 %value18, 39
  %value20 = mul i32 %value19, 41
  %value21 = mul i32 %value20, 43
  %value22 = mul i32 %value21, 45
  %value23 = mul i32 %value22, 47
  %value24 = mul i32 %value23, 49
  %value25 = mul i32 %value24, 51
  %value26 = mul i32 %value25, 53
  %value27 = mul i32 %value26, 55
  %value28 = mul i32 %value27, 57
  %value29 = mul i32 %value28, 59
  %value30 = mul i32 %value29, 61
  store i32 %value30, ptr %out
  ret void
}
