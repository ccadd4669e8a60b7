; Code that knows an array's size proves that a clamped index is inside. What is not proved may be compared with the size
; that the launch says.
; RUN: kiln-opt --passes=bounds-guards --parameters=in:4:4000 %s | FileCheck %s --check-prefixes=CHECK,KNOWN
; RUN: kiln-opt --passes=bounds-guards --compares-with-launch --parameters=in:4:4000 %s | FileCheck %s --check-prefixes=CHECK,LAUNCH

declare i32 @__kiln_value(i32)
declare i32 @llvm.umin.i32(i32, i32)

; CHECK-LABEL: define void @body(
; LAUNCH: %[[STARTS:.*]] = call i64 @llvm.usub.sat.i64(i64 %end, i64 3)
; CHECK: %inside = load float, ptr %inside.at
; KNOWN: icmp ult i64 %{{.*}}, 3997
; LAUNCH: icmp ult i64 %{{.*}}, %[[STARTS]]
; CHECK: %[[TO:.*]] = select i1 %{{.*}}, ptr %any.at, ptr @__kiln_zeros
; CHECK: load float, ptr %[[TO]]
define void @body(ptr %x, i64 %first, i64 %end, ptr %y, i32 %i) {
  %clamped = call i32 @llvm.umin.i32(i32 %i, i32 999)
  %clamped64 = zext i32 %clamped to i64
  %inside.at = getelementptr float, ptr %x, i64 %clamped64
  %inside = load float, ptr %inside.at
  %i64 = zext i32 %i to i64
  %any.at = getelementptr float, ptr %x, i64 %i64
  %any = load float, ptr %any.at
  %sum = fadd float %inside, %any
  store float %sum, ptr %y
  ret void
}
