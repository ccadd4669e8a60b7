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
