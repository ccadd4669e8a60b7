; Structures of two floats at numbers that are consecutive, or a butterfly's, when the code runs: members are
; interleaved and deinterleaved.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s --check-prefixes=CHECK,WIDE
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s --check-prefixes=CHECK,NARROW

@s = internal global [1024 x [2 x float]] zeroinitializer, section "kiln.threadgroup", align 16

declare i32 @__kiln_lane()

; The second address is moved before the first load.
; CHECK-LABEL: define void @loads(
; CHECK: br i1 %{{.*}}, label %parts, label %lanes
; CHECK: parts:
; WIDE-COUNT-2: load <32 x i32>
; NARROW-COUNT-4: load <16 x i32>
; CHECK: windows:
; WIDE-COUNT-2: load <64 x i32>
; NARROW-COUNT-4: load <32 x i32>
; WIDE-COUNT-2: call <32 x float> @llvm.masked.gather
define void @loads(ptr %y, i32 %first, i32 %j) {
  %lane = call i32 @__kiln_lane()
  %t = add i32 %first, %lane
  %partner = xor i32 %t, %j
  %at = zext i32 %partner to i64
  %from = getelementptr [2 x float], ptr @s, i64 %at
  %v = load float, ptr %from
  %next = getelementptr i8, ptr %from, i64 4
  %w = load float, ptr %next
  %sum = fadd float %v, %w
  %to = getelementptr float, ptr %y, i32 %lane
  store float %sum, ptr %to
  ret void
}

; CHECK-LABEL: define void @stores(
; CHECK: br i1 %{{.*}}, label %parts, label %lanes
; CHECK: parts:
; WIDE-COUNT-2: store <32 x i32>
; NARROW-COUNT-4: store <16 x i32>
; CHECK: lanes:
define void @stores(ptr %x, i32 %first, i32 %j) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %x, i32 %lane
  %v = load float, ptr %from
  %t = add i32 %first, %lane
  %partner = xor i32 %t, %j
  %at = zext i32 %partner to i64
  %to = getelementptr [2 x float], ptr @s, i64 %at
  %next = getelementptr i8, ptr %to, i64 4
  store float %v, ptr %to
  store float 0.0, ptr %next
  ret void
}

; A window's four registers: each takes both members from both partners.
; CHECK-LABEL: define void @butterfly(
; CHECK: butterfly:
; WIDE-COUNT-8: store <16 x i32>
; NARROW-COUNT-16: store <8 x i32>
; CHECK: sides:
define void @butterfly(ptr %x, i32 %first, i32 %j) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %x, i32 %lane
  %v = load float, ptr %from
  %w = fneg float %v
  %t = add i32 %first, %lane
  %quotient = udiv i32 %t, %j
  %rest = urem i32 %t, %j
  %twice = shl i32 %j, 1
  %product = mul i32 %twice, %quotient
  %i = add i32 %product, %rest
  %partner = add i32 %i, %j
  %at = zext i32 %i to i64
  %other = zext i32 %partner to i64
  %low = getelementptr [2 x float], ptr @s, i64 %at
  %low.next = getelementptr i8, ptr %low, i64 4
  %high = getelementptr [2 x float], ptr @s, i64 %other
  %high.next = getelementptr i8, ptr %high, i64 4
  store float %v, ptr %low
  store float %w, ptr %low.next
  store float %w, ptr %high
  store float %v, ptr %high.next
  ret void
}
