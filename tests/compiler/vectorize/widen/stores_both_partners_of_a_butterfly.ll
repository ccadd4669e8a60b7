; Stores to `s[i]` and `s[i + j]`, of which `i` is a number with a 0 inserted at the bit `j`, fill whole registers
; together. Whether they do is tested when the code runs. Stores to another array between do not matter.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s --check-prefixes=CHECK,WIDE
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s --check-prefixes=CHECK,NARROW

@s = internal global [1024 x float] zeroinitializer, section "kiln.threadgroup", align 16
@r = internal global [1024 x float] zeroinitializer, section "kiln.threadgroup", align 16

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @all_lanes(
; CHECK: br i1 %{{.*}}, label %butterfly, label %sides
; CHECK: butterfly:
; WIDE-COUNT-4: store <16 x i32>
; NARROW-COUNT-8: store <8 x i32>
; CHECK: sides:
; WIDE-COUNT-2: call void @llvm.masked.scatter
; CHECK: br i1 %{{.*}}, label %butterfly{{.*}}, label %sides
; CHECK: ret void
define void @all_lanes(ptr %x, i32 %first, i32 %j) {
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
  %first.s = getelementptr float, ptr @s, i64 %at
  %second.s = getelementptr float, ptr @s, i64 %other
  %first.r = getelementptr float, ptr @r, i64 %at
  %second.r = getelementptr float, ptr @r, i64 %other
  store float %v, ptr %first.s
  store float %v, ptr %first.r
  store float %w, ptr %second.s
  store float %w, ptr %second.r
  ret void
}

; Lanes that are off keep what is there: by a mask, or since it is stored again.
; CHECK-LABEL: define void @some_lanes(
; CHECK: butterfly:
; WIDE-COUNT-4: call void @llvm.masked.store.v16i32.p0(
; NARROW: %[[OLD:.*]] = load <8 x i32>
; NARROW: select <8 x i1> %{{.*}}, <8 x i32> %{{.*}}, <8 x i32> %[[OLD]]
define void @some_lanes(ptr %x, i32 %first, i32 %j) {
entry:
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %x, i32 %lane
  %v = load float, ptr %from
  %t = add i32 %first, %lane
  %quotient = udiv i32 %t, %j
  %rest = urem i32 %t, %j
  %twice = shl i32 %j, 1
  %product = mul i32 %twice, %quotient
  %i = add i32 %product, %rest
  %partner = add i32 %i, %j
  %at = zext i32 %i to i64
  %other = zext i32 %partner to i64
  %first.s = getelementptr float, ptr @s, i64 %at
  %second.s = getelementptr float, ptr @s, i64 %other
  %is.on = fcmp ogt float %v, 0.0
  br i1 %is.on, label %on, label %end
on:
  store float 0.0, ptr %first.s
  store float %v, ptr %second.s
  br label %end
end:
  ret void
}
