; Bytes of a record at an index that data choose are gathered as one word. Three of them are a word after a check, which
; may reach beyond the last one: of the guard's limit less one byte. Without a guard each is loaded by itself.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s --check-prefixes=CHECK,V4
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s --check-prefixes=CHECK,V3

declare i32 @__kiln_lane()
@__kiln_zeros.64 = external global [64 x i8]

; CHECK-LABEL: define void @two_halves(
; CHECK: %[[WORDS:.*]] = call <32 x i32> @llvm.masked.gather.v32i32.v32p0(<32 x ptr> %{{.*}}, i32 2,
; CHECK: trunc <32 x i32> %[[WORDS]] to <32 x i16>
; CHECK: %[[HIGH:.*]] = lshr <32 x i32> %[[WORDS]], <i32 16,
; CHECK: trunc <32 x i32> %[[HIGH]] to <32 x i16>
; CHECK-NOT: gather
; CHECK: ret void
define void @two_halves(ptr %x, ptr noalias %y, ptr %index) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i32, ptr %index, i32 %lane
  %j = load i32, ptr %at, !invariant.load !0
  %n = sext i32 %j to i64
  %p0 = getelementptr [2 x half], ptr %x, i64 %n
  %p1 = getelementptr i8, ptr %p0, i64 2
  %a = load half, ptr %p0
  %b = load half, ptr %p1
  %s = fadd half %a, %b
  %to = getelementptr half, ptr %y, i32 %lane
  store half %s, ptr %to
  ret void
}

; CHECK-LABEL: define void @three_bytes(
; CHECK: %[[LIMIT:.*]] = call i64 @llvm.usub.sat.i64(i64 %limit, i64 1)
; CHECK: br i1 %{{.*}}, label %records, label %members
; CHECK: records:
; CHECK-COUNT-1: call <32 x i32> @llvm.masked.gather
; CHECK-NOT: gather
; CHECK: members:
; CHECK: ret void
define void @three_bytes(ptr %x, ptr noalias %y, ptr %index, i64 %limit) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i32, ptr %index, i32 %lane
  %j = load i32, ptr %at, !invariant.load !0
  %n = sext i32 %j to i64
  %offset = mul i64 %n, 3
  %in = icmp ult i64 %offset, %limit
  %p0 = getelementptr i8, ptr %x, i64 %offset
  %p1 = getelementptr i8, ptr %p0, i64 1
  %p2 = getelementptr i8, ptr %p0, i64 2
  %q0 = select i1 %in, ptr %p0, ptr @__kiln_zeros.64
  %q1 = select i1 %in, ptr %p1, ptr @__kiln_zeros.64
  %q2 = select i1 %in, ptr %p2, ptr @__kiln_zeros.64
  %a = load i8, ptr %q0
  %b = load i8, ptr %q1
  %c = load i8, ptr %q2
  %ab = add i8 %a, %b
  %s = add i8 %ab, %c
  %to = getelementptr i8, ptr %y, i32 %lane
  store i8 %s, ptr %to
  ret void
}

; CHECK-LABEL: define void @three_bytes_without_guard(
; CHECK-NOT: label %records
; V4-COUNT-3: call <32 x i32> @llvm.masked.gather.v32i32.v32p0(<32 x ptr> %{{.*}}, i32 4,
; V3-NOT: gather
; V3-COUNT-3: load i8
; CHECK: ret void
define void @three_bytes_without_guard(ptr %x, ptr noalias %y, ptr %index) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i32, ptr %index, i32 %lane
  %j = load i32, ptr %at, !invariant.load !0
  %n = sext i32 %j to i64
  %offset = mul i64 %n, 3
  %p0 = getelementptr i8, ptr %x, i64 %offset
  %p1 = getelementptr i8, ptr %p0, i64 1
  %p2 = getelementptr i8, ptr %p0, i64 2
  %a = load i8, ptr %p0
  %b = load i8, ptr %p1
  %c = load i8, ptr %p2
  %ab = add i8 %a, %b
  %s = add i8 %ab, %c
  %to = getelementptr i8, ptr %y, i32 %lane
  store i8 %s, ptr %to
  ret void
}

!0 = !{}
