; Addresses as sums: uniform values and a few numbers that differ between lanes, each times a constant. A quotient is
; mostly the same in neighbouring lanes. Numbers that come from memory alone are marked. Four terms are too many, and lanes
; with a common factor are never consecutive.
; RUN: kiln-opt --passes=access-shapes %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK: ; one: sum 1 * column{{$}}
; CHECK: ; quotient: quotient 1 * row{{$}}
; CHECK: ; two: sum 7 * row 1 * column{{$}}
; CHECK: ; index: uniform{{$}}
; CHECK: ; both_less: sum 7 * row 1 * column + -8{{$}}
; CHECK: ; even: unknown{{$}}
define void @sums(ptr %x, i32 %first, i32 %n) {
  %lane = call i32 @__kiln_lane()
  %i = add i32 %first, %lane
  %scattered = mul i32 %i, %i
  %column = xor i32 %scattered, 5
  %row = udiv i32 %scattered, 100
  %column64 = zext i32 %column to i64
  %row64 = zext i32 %row to i64
  %one_at = getelementptr float, ptr %x, i64 %column64
  %one = load float, ptr %one_at
  %quotient_at = getelementptr float, ptr %x, i64 %row64
  %quotient = load float, ptr %quotient_at
  %rows = mul i64 %row64, 7
  %two_index = add i64 %rows, %column64
  %two_at = getelementptr float, ptr %x, i64 %two_index
  %two = load float, ptr %two_at
  %index = load i32, ptr %x
  %column_less = add i32 %column, -1
  %row_less = add i32 %row, -1
  %column_less64 = sext i32 %column_less to i64
  %row_less64 = sext i32 %row_less to i64
  %rows_less = mul i64 %row_less64, 7
  %both_index = add i64 %rows_less, %column_less64
  %both_at = getelementptr float, ptr %x, i64 %both_index
  %both_less = load float, ptr %both_at
  %twice = mul i64 %column64, 2
  %even_at = getelementptr float, ptr %x, i64 %twice
  %even = load float, ptr %even_at
  ret void
}

; CHECK: ; of_data: sum 1 * listed (of data){{$}}
define void @data(ptr %x, ptr %list, i64 %stride) {
  %lane = call i32 @__kiln_lane()
  %lane64 = zext i32 %lane to i64
  %at = getelementptr i32, ptr %list, i64 %lane64
  %listed = load i32, ptr %at
  %listed64 = zext i32 %listed to i64
  %of_data_at = getelementptr float, ptr %x, i64 %listed64
  %of_data = load float, ptr %of_data_at
  ret void
}
