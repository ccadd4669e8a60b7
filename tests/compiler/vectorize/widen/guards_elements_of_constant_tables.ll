; What the guard does not allow is zero. An index plus a constant counts from there on, also from before the table; the
; last element that 512 bytes reach is looked up, too.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s

@__kiln_zeros.64 = external global [64 x i8]
@steps = internal constant [5 x i16] [i16 1, i16 2, i16 3, i16 4, i16 5]
@border = internal constant [128 x float] zeroinitializer

declare i32 @__kiln_lane()

; The words are 0 and 1 at the two indices before the first, then 2 and 3, 4 and 5.
; CHECK-LABEL: define void @guarded(
; CHECK: permvar.si.512(<16 x i32> <i32 0, i32 131073, i32 262147, i32 5, i32 0,
; CHECK: trunc <32 x i32> %{{.*}} to <32 x i16>
; CHECK: select <32 x i1> %{{.*}}, <32 x i16> %{{.*}}, <32 x i16> zeroinitializer
define void @guarded(ptr %indices, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i32, ptr %indices, i32 %lane
  %k = load i32, ptr %at
  %wide = sext i32 %k to i64
  %first = getelementptr i8, ptr @steps, i64 -4
  %from = getelementptr i16, ptr %first, i64 %wide
  %place = add i64 %wide, -2
  %allowed = icmp ult i64 %place, 5
  %guarded = select i1 %allowed, ptr %from, ptr @__kiln_zeros.64
  %v = load i16, ptr %guarded
  %to = getelementptr i16, ptr %y, i32 %lane
  store i16 %v, ptr %to
  ret void
}

; CHECK-LABEL: define void @at_the_border(
; CHECK-COUNT-8: vpermi2var.d.512
define void @at_the_border(ptr %indices, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i32, ptr %indices, i32 %lane
  %k = load i32, ptr %at
  %from = getelementptr [128 x float], ptr @border, i64 0, i32 %k
  %v = load float, ptr %from
  %to = getelementptr float, ptr %y, i32 %lane
  store float %v, ptr %to
  ret void
}
