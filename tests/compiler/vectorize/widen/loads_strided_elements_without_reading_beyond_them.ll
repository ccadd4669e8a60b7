; Bytes of pixels of three, of an argument without bounds checks: registers that end with the last lane's element, not a
; gather lane by lane, and not a register of what lies between them behind it. Words are loaded like that, too.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s

declare i32 @__kiln_lane()

; The 94 bytes from the first to the last lane's.
; CHECK-LABEL: define void @reds(
; CHECK: getelementptr i8, ptr {{.*}}, i32 0
; CHECK-NEXT: load <32 x i8>
; CHECK-NEXT: getelementptr i8, ptr {{.*}}, i32 32
; CHECK-NEXT: load <32 x i8>
; CHECK-NEXT: getelementptr i8, ptr {{.*}}, i32 62
; CHECK-NEXT: load <32 x i8>
; CHECK-NOT: load
; CHECK: ret void
define void @reds(ptr %x, ptr %y) {
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

; CHECK-LABEL: define void @words(
; CHECK-COUNT-8: load <16 x i32>
; CHECK-NOT: load
; CHECK: ret void
define void @words(ptr %x, ptr %y) {
entry:
  %lane = call i32 @__kiln_lane()
  %w = zext i32 %lane to i64
  %place = mul nuw i64 %w, 3
  %at = getelementptr i32, ptr %x, i64 %place
  %v = load i32, ptr %at
  %to = getelementptr i32, ptr %y, i64 %w
  store i32 %v, ptr %to
  ret void
}
