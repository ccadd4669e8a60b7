; Addresses in rows of a matrix, whose distance is known at run time only: for each lane a number of rows and an offset in
; bytes. Two distances in one address are too many.
; RUN: kiln-opt --passes=access-shapes %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK: ; element: rows 0 0 0 0 4 4 4 4 8 8 8 8 {{.*}} 28 28 28 28 with offsets 0 4 8 12 0 4 8 12 {{.*}} 12{{$}}
; CHECK: ; of_two: {{sum|unknown}}
define void @rows(ptr %x, i64 %pitch, i64 %other) {
  %lane = call i32 @__kiln_lane()
  %lane64 = zext i32 %lane to i64
  %row = lshr i64 %lane64, 2
  %column = and i64 %lane64, 3
  %begin = mul i64 %row, %pitch
  %index = add i64 %begin, %column
  %element_at = getelementptr float, ptr %x, i64 %index
  %element = load float, ptr %element_at
  %far = mul i64 %column, %other
  %of_two_index = add i64 %begin, %far
  %of_two_at = getelementptr float, ptr %x, i64 %of_two_index
  %of_two = load float, ptr %of_two_at
  ret void
}
