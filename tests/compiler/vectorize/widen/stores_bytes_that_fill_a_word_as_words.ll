; Bytes and 16-bit integers that are truncated words, and fill a word of each lane, are combined as words: no permutation
; of bytes. Uniform members are splats.
; RUN: kiln-opt --passes=widen,instsimplify --full --cpu=x86-64-v4 %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @colours(
; CHECK: zext <32 x i8> %{{.*}} to <32 x i32>
; CHECK: %[[GREEN:.*]] = zext <32 x i8> %{{.*}} to <32 x i32>
; CHECK: shl <32 x i32> %[[GREEN]], <i32 8,
; CHECK: or <32 x i32>
; CHECK: shl <32 x i32> %{{.*}}, <i32 16,
; CHECK: or <32 x i32>
; CHECK: %[[ALL:.*]] = or <32 x i32>
; CHECK: %[[LOW:.*]] = shufflevector <32 x i32> %[[ALL]]
; CHECK: store <16 x i32> %[[LOW]], ptr %{{.*}}, align 1
; CHECK: store <16 x i32>
; CHECK-NOT: store
define void @colours(ptr %x, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %at = zext i32 %lane to i64
  %to = getelementptr [4 x i8], ptr %x, i64 %at
  %from = getelementptr i32, ptr %y, i64 %at
  %number = load i32, ptr %from
  %red.word = mul i32 %number, 3
  %green.word = add i32 %number, 7
  %blue.word = xor i32 %number, 9
  %red = trunc i32 %red.word to i8
  %green = trunc i32 %green.word to i8
  %blue = trunc i32 %blue.word to i8
  %to.1 = getelementptr i8, ptr %to, i64 1
  %to.2 = getelementptr i8, ptr %to, i64 2
  %to.3 = getelementptr i8, ptr %to, i64 3
  store i8 %red, ptr %to
  store i8 %green, ptr %to.1
  store i8 %blue, ptr %to.2
  store i8 -1, ptr %to.3
  ret void
}

; CHECK-LABEL: define void @pairs(
; CHECK: shl <32 x i32> %{{.*}}, <i32 16,
; CHECK: store <16 x i32>
define void @pairs(ptr %x, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %at = zext i32 %lane to i64
  %to = getelementptr [2 x i16], ptr %x, i64 %at
  %from = getelementptr i32, ptr %y, i64 %at
  %number = load i32, ptr %from
  %one.word = mul i32 %number, 3
  %two.word = add i32 %number, 7
  %one = trunc i32 %one.word to i16
  %two = trunc i32 %two.word to i16
  %to.1 = getelementptr i16, ptr %to, i64 1
  store i16 %one, ptr %to
  store i16 %two, ptr %to.1
  ret void
}

; Bytes that are computed as bytes are permuted.
; CHECK-LABEL: define void @bytes(
; CHECK-NOT: zext
; CHECK-COUNT-4: store <32 x i8>
define void @bytes(ptr %x, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %at = zext i32 %lane to i64
  %from = getelementptr i8, ptr %y, i64 %at
  %byte = load i8, ptr %from, align 1
  %to = getelementptr [4 x i8], ptr %x, i64 %at
  %to.1 = getelementptr i8, ptr %to, i64 1
  %to.2 = getelementptr i8, ptr %to, i64 2
  %to.3 = getelementptr i8, ptr %to, i64 3
  store i8 %byte, ptr %to
  store i8 %byte, ptr %to.1
  store i8 %byte, ptr %to.2
  store i8 -1, ptr %to.3
  ret void
}

; A member that is missing, and three of them, fill no word.
; CHECK-LABEL: define void @three(
; CHECK-NOT: store <16 x i32>
; CHECK: ret void
define void @three(ptr %x) {
  %lane = call i32 @__kiln_lane()
  %at = zext i32 %lane to i64
  %to = getelementptr [4 x i8], ptr %x, i64 %at
  %word = mul i32 %lane, 3
  %byte = trunc i32 %word to i8
  %to.1 = getelementptr i8, ptr %to, i64 1
  %to.2 = getelementptr i8, ptr %to, i64 2
  store i8 %byte, ptr %to
  store i8 %byte, ptr %to.1
  store i8 %byte, ptr %to.2
  ret void
}
