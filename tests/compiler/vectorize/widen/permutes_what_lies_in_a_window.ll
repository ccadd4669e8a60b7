; Lanes of threadgroup memory that are no consecutive parts may come from two registers each: then a load is a
; permutation of these. A store of `t ^ j`, or of a number with a 0 inserted, is the reverse one, which writes the rest as
; it was read where there are no masks.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s --check-prefixes=CHECK,WIDE
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s --check-prefixes=CHECK,NARROW

@s = internal global [512 x float] zeroinitializer, section "kiln.threadgroup", align 16

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @load(
; CHECK: lanes:
; WIDE-COUNT-2: icmp ult <16 x i32> %{{.*}}, <i32 32,
; NARROW-COUNT-4: icmp ult <8 x i32> %{{.*}}, <i32 16,
; The window is in the array: its last element begins before the array ends.
; WIDE: call i64 @llvm.usub.sat.i64(i64 2045, i64 124)
; NARROW: call i64 @llvm.usub.sat.i64(i64 2045, i64 60)
; CHECK: windows:
; WIDE-COUNT-2: call <16 x i32> @llvm.x86.avx512.vpermi2var.d.512(
; NARROW-COUNT-8: call <8 x i32> @llvm.x86.avx2.permd(
; WIDE: call <32 x float> @llvm.masked.gather
define void @load(ptr %y, i32 %first, i32 %j) {
  %lane = call i32 @__kiln_lane()
  %t = add i32 %first, %lane
  %partner = xor i32 %t, %j
  %at = zext i32 %partner to i64
  %from = getelementptr float, ptr @s, i64 %at
  %v = load float, ptr %from
  %to = getelementptr float, ptr %y, i32 %lane
  store float %v, ptr %to
  ret void
}

; CHECK-LABEL: define void @store(
; CHECK: lanes:
; WIDE: xor i32 %{{.*}}, 31
; NARROW: xor i32 %{{.*}}, 15
; WIDE-COUNT-2: icmp eq <16 x i32>
; NARROW-COUNT-4: icmp eq <8 x i32>
; CHECK: windows:
; WIDE-COUNT-4: call void @llvm.masked.store.v16i32.p0(
; NARROW: %[[OLD:.*]] = load <8 x i32>
; NARROW: %[[NEW:.*]] = select <8 x i1> %{{.*}}, <8 x i32> %{{.*}}, <8 x i32> %[[OLD]]
; NARROW: store <8 x i32> %[[NEW]]
; WIDE: call void @llvm.masked.scatter
define void @store(ptr %x, i32 %first, i32 %j) {
  %lane = call i32 @__kiln_lane()
  %from = getelementptr float, ptr %x, i32 %lane
  %v = load float, ptr %from
  %t = add i32 %first, %lane
  %partner = xor i32 %t, %j
  %at = zext i32 %partner to i64
  %to = getelementptr float, ptr @s, i64 %at
  store float %v, ptr %to
  ret void
}
