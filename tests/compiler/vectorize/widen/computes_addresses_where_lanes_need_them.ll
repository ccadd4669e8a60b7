; An address that serves accesses alone is computed on the path on which lanes access memory one by one. If a lane's
; number is used otherwise, it is a vector.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s

@s = internal global [512 x float] zeroinitializer, section "kiln.threadgroup", align 16

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @address(
; CHECK-NOT: zext <32 x i32>
; CHECK: lane{{.*}}:
; CHECK: zext i32 %{{.*}} to i64
; CHECK: ret void
define void @address(ptr %y, i32 %first, i32 %j) {
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

; CHECK-LABEL: define void @number(
; CHECK: zext <32 x i32>
; CHECK: ret void
define void @number(ptr %y, i32 %first, i32 %j) {
  %lane = call i32 @__kiln_lane()
  %t = add i32 %first, %lane
  %partner = xor i32 %t, %j
  %at = zext i32 %partner to i64
  %from = getelementptr float, ptr @s, i64 %at
  %v = load float, ptr %from
  %n = uitofp i64 %at to float
  %sum = fadd float %v, %n
  %to = getelementptr float, ptr %y, i32 %lane
  store float %sum, ptr %to
  ret void
}

; A vector of integers of six bits would be packed in memory: lanes find theirs in bytes.
; CHECK-LABEL: define void @narrow(
; CHECK: %[[BYTES:.*]] = zext <32 x i6> %{{.*}} to <32 x i8>
; CHECK: store <32 x i8> %[[BYTES]], ptr %[[SLOT:[0-9]+]]
; CHECK: lane{{.*}}:
; CHECK: %[[AT:.*]] = getelementptr i8, ptr %[[SLOT]], i32 %{{.*}}
; CHECK: %[[BYTE:.*]] = load i8, ptr %[[AT]]
; CHECK: trunc i8 %[[BYTE]] to i6
; CHECK: ret void
define void @narrow(i32 %first, float %v) {
  %lane = call i32 @__kiln_lane()
  %t = add i32 %first, %lane
  %bits = trunc i32 %t to i6
  %reversed = call i6 @llvm.bitreverse.i6(i6 %bits)
  %at = zext i6 %reversed to i64
  %to = getelementptr float, ptr @s, i64 %at
  store float %v, ptr %to
  ret void
}

declare i6 @llvm.bitreverse.i6(i6)
