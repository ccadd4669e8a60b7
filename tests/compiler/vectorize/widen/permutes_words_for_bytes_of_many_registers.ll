; Every twelfth byte of 373, which six registers have: the words that they lie in are permuted, shifted and narrowed. LLVM
; would make several instructions of each permutation of bytes of two registers.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s --check-prefix=SMALL

declare i32 @__kiln_lane()

; The last register ends with the last lane's byte, the fourth of its word.
; CHECK-LABEL: define void @bytes(
; CHECK-COUNT-5: load <16 x i32>
; CHECK: getelementptr i8, ptr {{.*}}, i32 309
; CHECK-NEXT: load <16 x i32>
; CHECK-NOT: load
; CHECK-NOT: shufflevector <{{.*}} x i8> {{.*}}, <{{.*}} x i8> %
; CHECK: lshr <16 x i32> %{{.*}}, zeroinitializer
; CHECK-NEXT: trunc <16 x i32> %{{.*}} to <16 x i8>
; CHECK: lshr <16 x i32> %{{.*}}, <i32 {{[0-9, i]*}} i32 24>
; CHECK-NEXT: trunc <16 x i32> %{{.*}} to <16 x i8>
; CHECK: ret void
; SMALL-LABEL: define void @bytes(
; SMALL: trunc <8 x i32> %{{.*}} to <8 x i8>
; SMALL: ret void
define void @bytes(ptr %x, ptr %y) {
entry:
  %lane = call i32 @__kiln_lane()
  %w = zext i32 %lane to i64
  %place = mul nuw i64 %w, 12
  %at = getelementptr i8, ptr %x, i64 %place
  %v = load i8, ptr %at
  %to = getelementptr i8, ptr %y, i64 %w
  store i8 %v, ptr %to
  ret void
}

; Of three registers at most, bytes are permuted.
; CHECK-LABEL: define void @near(
; CHECK-NOT: lshr
; CHECK: ret void
define void @near(ptr %x, ptr %y) {
entry:
  %lane = call i32 @__kiln_lane()
  %w = zext i32 %lane to i64
  %place = mul nuw i64 %w, 3
  %at = getelementptr i8, ptr %x, i64 %place
  %v = load i8, ptr %at
  %to = getelementptr i8, ptr %y, i64 %w
  store i8 %v, ptr %to
  ret void
}
