; Numbers of 64 bits wrap as the distances between lanes do. A narrow one needs a check, unless its exact range shows that
; it is small: flags hold in active lanes alone. A guard whose offsets are extended from 32 bits says where these end.
; RUN: kiln-opt --passes=access-shapes %s | FileCheck %s

@__kiln_zeros = external constant [64 x i8]

declare i32 @__kiln_lane()

; CHECK: ; wide: stride 4{{$}}
; CHECK: ; narrow: stride 4, may wrap{{$}}
; CHECK: ; flagged: stride 4, may wrap{{$}}
; CHECK: ; small: stride 4{{$}}
; CHECK: ; negative: stride 4, may wrap{{$}}
define void @numbers(ptr %x, i32 %first, i64 %first64) {
  %lane = call i32 @__kiln_lane()
  %lane64 = zext i32 %lane to i64
  %i64 = add i64 %first64, %lane64
  %wide_at = getelementptr float, ptr %x, i64 %i64
  %wide = load float, ptr %wide_at
  %i = add i32 %first, %lane
  %i_wide = zext i32 %i to i64
  %narrow_at = getelementptr float, ptr %x, i64 %i_wide
  %narrow = load float, ptr %narrow_at
  %flagged_i = add nuw nsw i32 %first, %lane
  %flagged_wide = zext i32 %flagged_i to i64
  %flagged_at = getelementptr float, ptr %x, i64 %flagged_wide
  %flagged = load float, ptr %flagged_at
  %few = and i32 %first, 1023
  %small_i = add i32 %few, %lane
  %small_wide = zext i32 %small_i to i64
  %small_at = getelementptr float, ptr %x, i64 %small_wide
  %small = load float, ptr %small_at
  %below = sub i32 %few, 2000
  %negative_i = add i32 %below, %lane
  %negative_wide = zext i32 %negative_i to i64
  %negative_at = getelementptr float, ptr %x, i64 %negative_wide
  %negative = load float, ptr %negative_at
  ret void
}
