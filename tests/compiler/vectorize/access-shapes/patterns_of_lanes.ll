; Lanes at constant distances that are no stride: offsets in bytes from the lowest lane's address, and how many lanes in a
; row are consecutive. A table's bits may come from the lane index and from uniform numbers.
; RUN: kiln-opt --passes=access-shapes %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK: ; pairs: pattern 0 0 4 4 8 8 12 12 16 16 20 20 24 24 28 28 32 32 36 36 40 40 44 44 48 48 52 52 56 56 60 60{{$}}
; CHECK: ; backwards: pattern 124 120 116 {{.*}} 8 4 0, may wrap{{$}}
; CHECK: ; columns: pattern 0 4 8 12 16 20 24 28 32 36 40 44 48 52 56 60 0 4 {{.*}} 60, strips of 16{{$}}
; CHECK: ; bits: pattern 0 0 0 0 0 0 0 0 64 64 {{.*}} 192, may wrap{{$}}
; CHECK: ; far: unknown{{$}}
define void @patterns(ptr %x, i64 %last, i32 %group) {
  %lane = call i32 @__kiln_lane()
  %lane64 = zext i32 %lane to i64
  %half = lshr i64 %lane64, 1
  %pairs_at = getelementptr float, ptr %x, i64 %half
  %pairs = load float, ptr %pairs_at
  %narrow_last = trunc i64 %last to i32
  %from_end = sub i32 %narrow_last, %lane
  %from_end64 = zext i32 %from_end to i64
  %backwards_at = getelementptr float, ptr %x, i64 %from_end64
  %backwards = load float, ptr %backwards_at
  %column = and i64 %lane64, 15
  %columns_at = getelementptr float, ptr %x, i64 %column
  %columns = load float, ptr %columns_at
  %first = and i32 %group, 96
  %place = or disjoint i32 %first, %lane
  %shifted = shl i32 %place, 1
  %kept = and i32 %shifted, 240
  %kept64 = zext i32 %kept to i64
  %bits_at = getelementptr float, ptr %x, i64 %kept64
  %bits = load float, ptr %bits_at
  %cube = mul i64 %half, 100000
  %far_at = getelementptr i8, ptr %x, i64 %cube
  %far = load float, ptr %far_at
  ret void
}
