; Sums of extended bytes that are compared or become bytes again need 16 bits, or 8 if they fit. What is left of a
; comparison in 32 bits is one without a sign.
; RUN: kiln-opt --passes=narrow-integers %s | FileCheck %s

declare i32 @__kiln_lane()
declare i32 @llvm.smin.i32(i32, i32)

; CHECK-LABEL: define i1 @sum(
; CHECK: %[[A:.*]] = zext i8 %a to i16
; CHECK: %[[B:.*]] = zext i8 %b to i16
; CHECK: %[[S:.*]] = add i16 %[[A]], %[[B]]
; CHECK: %[[T:.*]] = udiv i16 %[[S]], 3
; CHECK: icmp ugt i16 %[[T]], 100
define i1 @sum(ptr %x) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i8, ptr %x, i32 %lane
  %a = load i8, ptr %at
  %next = getelementptr i8, ptr %at, i64 1
  %b = load i8, ptr %next
  %wa = zext i8 %a to i32
  %wb = zext i8 %b to i32
  %s = add i32 %wa, %wb
  %t = udiv i32 %s, 3
  %r = icmp sgt i32 %t, 100
  ret i1 %r
}

; A difference has a sign; its extension back to 32 bits has it too.
; CHECK-LABEL: define i32 @difference(
; CHECK: %[[D:.*]] = sub i16
; CHECK: %[[M:.*]] = call i16 @llvm.smin.i16(i16 %[[D]], i16 100)
; CHECK: %[[P:.*]] = mul i16 %[[M]], 3
; CHECK: sext i16 %[[P]] to i32
define i32 @difference(ptr %x) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i8, ptr %x, i32 %lane
  %a = load i8, ptr %at
  %next = getelementptr i8, ptr %at, i64 1
  %b = load i8, ptr %next
  %wa = zext i8 %a to i32
  %wb = zext i8 %b to i32
  %d = sub i32 %wa, %wb
  %m = call i32 @llvm.smin.i32(i32 %d, i32 100)
  %p = mul i32 %m, 3
  ret i32 %p
}

; Nothing needs more than 8 bits, and vectors of bytes have these operations.
; CHECK-LABEL: define i1 @bytes(
; CHECK-NOT: zext
; CHECK: %[[U:.*]] = and i8 %a, %b
; CHECK: %[[V:.*]] = select i1 %c, i8 %[[U]], i8 %b
; CHECK: icmp eq i8 %[[V]], -1
define i1 @bytes(ptr %x, i1 %c) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i8, ptr %x, i32 %lane
  %a = load i8, ptr %at
  %next = getelementptr i8, ptr %at, i64 1
  %b = load i8, ptr %next
  %wa = zext i8 %a to i32
  %wb = zext i8 %b to i32
  %u = and i32 %wa, %wb
  %v = select i1 %c, i32 %u, i32 %wb
  %r = icmp eq i32 %v, 255
  ret i1 %r
}
