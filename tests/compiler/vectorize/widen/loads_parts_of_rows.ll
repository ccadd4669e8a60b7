; Each lane has a row of its own, and loads a few elements that are beside one another: 16 bytes of each row, or 8, are
; parts of registers, which are transposed within 16 bytes. One word has the members of 1 and 2 bytes.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s

declare i32 @__kiln_lane()
@__kiln_zeros.64 = external global [64 x i8]

; Lane 0 and lane 4 are in one register, lane 1 and lane 5 in the next.
; CHECK-LABEL: define void @four_words(
; CHECK: [[ONE:%.+]] = getelementptr i32, ptr %{{.+}}, i64 40
; CHECK: [[FOUR:%.+]] = getelementptr i32, ptr %{{.+}}, i64 160
; CHECK: load <4 x i32>, ptr
; CHECK: load <4 x i32>, ptr [[FOUR]]
; CHECK: shufflevector <4 x i32> %{{.+}}, <4 x i32> %{{.+}}, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
; CHECK: load <4 x i32>, ptr [[ONE]]
; CHECK-COUNT-29: load <4 x i32>, ptr
; CHECK-NOT: load i32
; CHECK: ret void
define void @four_words(ptr %x, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %i = zext i32 %lane to i64
  %n = mul i64 %i, 40
  %p0 = getelementptr i32, ptr %x, i64 %n
  %p1 = getelementptr i32, ptr %p0, i64 1
  %p2 = getelementptr i32, ptr %p0, i64 2
  %p3 = getelementptr i32, ptr %p0, i64 3
  %a = load i32, ptr %p0
  %b = load i32, ptr %p1
  %c = load i32, ptr %p2
  %d = load i32, ptr %p3
  %ab = mul i32 %a, %b
  %cd = mul i32 %c, %d
  %s = add i32 %ab, %cd
  %to = getelementptr i32, ptr %y, i64 %i
  store i32 %s, ptr %to
  ret void
}

; CHECK-LABEL: define void @two_bytes(
; CHECK: trunc <32 x i32> %{{.+}} to <32 x i8>
; CHECK: lshr <32 x i32> %{{.+}}, <i32 24, i32 24,
; CHECK: trunc <32 x i32> %{{.+}} to <32 x i8>
; CHECK: ret void
define void @two_bytes(ptr %x, ptr %y, i64 %limit) {
  %lane = call i32 @__kiln_lane()
  %i = zext i32 %lane to i64
  %n = mul i64 %i, 100
  %m = add i64 %n, 3
  %p0 = getelementptr i8, ptr %x, i64 %n
  %p1 = getelementptr i8, ptr %x, i64 %m
  %in0 = icmp ult i64 %n, %limit
  %in1 = icmp ult i64 %m, %limit
  %g0 = select i1 %in0, ptr %p0, ptr @__kiln_zeros.64
  %g1 = select i1 %in1, ptr %p1, ptr @__kiln_zeros.64
  %a = load i8, ptr %g0
  %b = load i8, ptr %g1
  %s = add i8 %a, %b
  %to = getelementptr i8, ptr %y, i64 %i
  store i8 %s, ptr %to
  ret void
}

; Without a check the last lane's row may end with its last member: what is between two of them is not a power of two.
; CHECK-LABEL: define void @three_words_of_an_argument(
; CHECK-NOT: load <{{[24]}} x i32>
; CHECK: ret void
define void @three_words_of_an_argument(ptr %x, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %i = zext i32 %lane to i64
  %n = mul i64 %i, 40
  %p0 = getelementptr i32, ptr %x, i64 %n
  %p2 = getelementptr i32, ptr %p0, i64 2
  %a = load i32, ptr %p0
  %c = load i32, ptr %p2
  %s = add i32 %a, %c
  %to = getelementptr i32, ptr %y, i64 %i
  store i32 %s, ptr %to
  ret void
}
