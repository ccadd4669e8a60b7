; Borders: a register that holds more bytes than there are lanes, bits that are no power of two, and numbers of so few
; bits that the lanes of a part would wrap.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s

declare i32 @__kiln_lane()
declare i32 @llvm.smax.i32(i32, i32)

; CHECK-LABEL: define void @fill(
; CHECK-COUNT-2: store <32 x i8>
; CHECK-NOT: store
; CHECK: ret void
define void @fill(ptr %y, i8 %v) {
entry:
  %lane = call i32 @__kiln_lane()
  %w = zext i32 %lane to i64
  %at = getelementptr [2 x i8], ptr %y, i64 %w
  %at1 = getelementptr i8, ptr %at, i64 1
  store i8 %v, ptr %at
  store i8 %v, ptr %at1
  ret void
}

; CHECK-LABEL: define void @threebytes(
; CHECK-NOT: {{<(10|21) x i24>}}
; CHECK: ret void
define void @threebytes(ptr %x, ptr %y) {
entry:
  %lane = call i32 @__kiln_lane()
  %w = zext i32 %lane to i64
  %at = getelementptr [9 x i8], ptr %x, i64 %w
  %at1 = getelementptr i8, ptr %at, i64 3
  %at2 = getelementptr i8, ptr %at, i64 6
  %v = load i24, ptr %at, align 1
  %v1 = load i24, ptr %at1, align 1
  %v2 = load i24, ptr %at2, align 1
  %s = add i24 %v, %v1
  %t = add i24 %s, %v2
  %u = zext i24 %t to i32
  %to = getelementptr i32, ptr %y, i32 %lane
  store i32 %u, ptr %to
  ret void
}

; CHECK-LABEL: define void @tiny(
; CHECK-NOT: parts:
; CHECK: ret void
define void @tiny(ptr %x, ptr %y, i32 %first) {
entry:
  %lane = call i32 @__kiln_lane()
  %q = call i32 @llvm.smax.i32(i32 %lane, i32 %first)
  %n = trunc i32 %q to i3
  %aw = zext i3 %n to i64
  %at = getelementptr float, ptr %x, i64 %aw
  %v = load float, ptr %at
  %to = getelementptr float, ptr %y, i32 %lane
  store float %v, ptr %to
  ret void
}
