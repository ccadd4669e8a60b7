; Four members of 2 bytes a thread: 16 bytes are permuted so that they have a word of each member, and words are
; deinterleaved. Of three bytes a thread, 16 lanes' members are in three chunks at positions that all differ: they are
; blended, and then permuted within chunks. Where lanes may be off and there are no masks of bytes, nothing is
; stored beside the members.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @four_halves(
; CHECK: [[PART:%.+]] = load <16 x half>, ptr
; CHECK: [[MEMBERS:%.+]] = shufflevector <16 x half> [[PART]], <16 x half> poison, <16 x i32> <i32 0, i32 4, i32 1, i32 5, i32 2, i32 6, i32 3, i32 7, i32 8, i32 12,
; CHECK: bitcast <16 x half> [[MEMBERS]] to <8 x i32>
; CHECK: shufflevector <8 x i32> %{{.+}}, <8 x i32> %{{.+}}, <8 x i32> <i32 0, i32 2, i32 4,
; CHECK-NOT: lshr
; CHECK: ret void
define void @four_halves(ptr %x, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %i = zext i32 %lane to i64
  %n = shl i64 %i, 2
  %p0 = getelementptr half, ptr %x, i64 %n
  %p1 = getelementptr half, ptr %p0, i64 1
  %p2 = getelementptr half, ptr %p0, i64 2
  %p3 = getelementptr half, ptr %p0, i64 3
  %a = load half, ptr %p0
  %b = load half, ptr %p1
  %c = load half, ptr %p2
  %d = load half, ptr %p3
  %ab = fadd half %a, %b
  %cd = fadd half %c, %d
  %s = fadd half %ab, %cd
  %to = getelementptr half, ptr %y, i64 %i
  store half %s, ptr %to
  ret void
}

; CHECK-LABEL: define void @three_bytes(
; CHECK-COUNT-6: load <16 x i8>, ptr
; CHECK: [[TWO:%.+]] = shufflevector <32 x i8> %{{.+}}, <32 x i8> %{{.+}}, <32 x i32> <i32 0, i32 1, i32 34, i32 3,
; CHECK: [[ALL:%.+]] = shufflevector <32 x i8> [[TWO]], <32 x i8> %{{.+}}, <32 x i32> <i32 0, i32 33, i32 2, i32 3,
; CHECK: shufflevector <32 x i8> [[ALL]], <32 x i8> poison, <32 x i32> <i32 0, i32 3, i32 6, i32 9, i32 12, i32 15, i32 2, i32 5, i32 8, i32 11, i32 14, i32 1, i32 4, i32 7, i32 10, i32 13, i32 16,
; CHECK-COUNT-3: store <32 x i8>
; CHECK: ret void
define void @three_bytes(ptr %x, ptr noalias %y) {
  %lane = call i32 @__kiln_lane()
  %i = zext i32 %lane to i64
  %n = mul i64 %i, 3
  %p0 = getelementptr i8, ptr %x, i64 %n
  %p1 = getelementptr i8, ptr %p0, i64 1
  %p2 = getelementptr i8, ptr %p0, i64 2
  %a = load i8, ptr %p0
  %b = load i8, ptr %p1
  %c = load i8, ptr %p2
  %q0 = getelementptr i8, ptr %y, i64 %n
  %q1 = getelementptr i8, ptr %q0, i64 1
  %q2 = getelementptr i8, ptr %q0, i64 2
  store i8 %c, ptr %q0
  store i8 %b, ptr %q1
  store i8 %a, ptr %q2
  ret void
}

; CHECK-LABEL: define void @one_of_two_bytes(
; CHECK-NOT: llvm.masked.store
; CHECK: store i8 %
define void @one_of_two_bytes(ptr %x, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %i = zext i32 %lane to i64
  %n = shl i64 %i, 1
  %p = getelementptr i8, ptr %x, i64 %n
  %a = load i8, ptr %p
  %q = getelementptr i8, ptr %y, i64 %n
  store i8 %a, ptr %q
  ret void
}
