; Bytes and halves that data choose are gathered as the aligned words in which they lie.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s --check-prefix=LOOP

; LOOP-NOT: masked.gather

declare i32 @__kiln_lane()

; An unsigned index of bytes has 30 bits of a word's.
; CHECK-LABEL: define void @table(
; CHECK: %[[K:.*]] = load <32 x i32>
; CHECK: %[[AT:.*]] = ptrtoint ptr %x to i64
; CHECK: and i64 %[[AT]], 3
; CHECK: and <32 x i32> %[[K]], <i32 3,
; CHECK: lshr <32 x i32> %[[K]], <i32 2,
; CHECK: %[[BASE:.*]] = call ptr @llvm.ptrmask.p0.i64(ptr %x, i64 -4)
; CHECK: sext <32 x i32> %{{.*}} to <32 x i64>
; CHECK: %[[WORDS:.*]] = getelementptr i32, ptr %[[BASE]], <32 x i64>
; CHECK: %[[GATHERED:.*]] = call <32 x i32> @llvm.masked.gather.v32i32.v32p0(<32 x ptr> %[[WORDS]], i32 4,
; CHECK: shl <32 x i32> %{{.*}}, <i32 3,
; CHECK: %[[PART:.*]] = lshr <32 x i32> %[[GATHERED]],
; CHECK: trunc <32 x i32> %[[PART]] to <32 x i8>
define void @table(ptr %x, ptr %k, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr i32, ptr %k, i32 %lane
  %index = load i32, ptr %from
  %at = zext i32 %index to i64
  %element = getelementptr i8, ptr %x, i64 %at
  %v = load i8, ptr %element
  %to = getelementptr i8, ptr %y, i32 %lane
  store i8 %v, ptr %to
  ret void
}

; Half of an index with a sign.
; CHECK-LABEL: define void @halves(
; CHECK: ashr <32 x i32> %{{.*}}, <i32 1,
; CHECK: call <32 x i32> @llvm.masked.gather
; CHECK: trunc <32 x i32> %{{.*}} to <32 x i16>
; CHECK: bitcast <32 x i16> %{{.*}} to <32 x half>
define void @halves(ptr %x, ptr %k, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr i32, ptr %k, i32 %lane
  %index = load i32, ptr %from
  %at = sext i32 %index to i64
  %element = getelementptr half, ptr %x, i64 %at
  %v = load half, ptr %element, align 2
  %to = getelementptr half, ptr %y, i32 %lane
  store half %v, ptr %to
  ret void
}

; Half of an unsigned index, and one more, may be no number with a sign: whole addresses.
; CHECK-LABEL: define void @unsigned_halves(
; CHECK: %[[IN:.*]] = and <32 x i64> %{{.*}}, <i64 3,
; CHECK: sub <32 x i64> zeroinitializer, %[[IN]]
; CHECK: call <32 x i32> @llvm.masked.gather
define void @unsigned_halves(ptr %x, ptr %k, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr i32, ptr %k, i32 %lane
  %index = load i32, ptr %from
  %at = zext i32 %index to i64
  %element = getelementptr half, ptr %x, i64 %at
  %v = load half, ptr %element, align 2
  %to = getelementptr half, ptr %y, i32 %lane
  store half %v, ptr %to
  ret void
}

; A half at an odd address may lie in two words.
; CHECK-LABEL: define void @odd(
; CHECK-NOT: masked.gather
; CHECK: ret void
define void @odd(ptr %x, ptr %k, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr i32, ptr %k, i32 %lane
  %index = load i32, ptr %from
  %at = sext i32 %index to i64
  %element = getelementptr i8, ptr %x, i64 %at
  %v = load half, ptr %element, align 1
  %to = getelementptr half, ptr %y, i32 %lane
  store half %v, ptr %to
  ret void
}
