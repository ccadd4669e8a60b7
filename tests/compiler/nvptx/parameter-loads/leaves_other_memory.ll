; Arrays, other assembly, volatile loads, and offsets that vary, at which a parameter cannot be read.
; RUN: kiln-opt --passes=parameter-loads %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: define i32 @kernel(
; CHECK-NOT: addrspace(101)
; CHECK: ret i32
define i32 @kernel(ptr byval([64 x i8]) %parameter, ptr %array, i64 %index) {
  %generic = call ptr asm "cvta.param.u64 $0, parameter;", "=l"()
  %other = call ptr asm "mov.u64 $0, 8;", "=l"()
  %a = load i32, ptr %array
  %b = load i32, ptr %other
  %c = load volatile i32, ptr %generic
  %at = getelementptr i8, ptr %generic, i64 %index
  %d = load i32, ptr %at
  %ab = add i32 %a, %b
  %cd = add i32 %c, %d
  %sum = add i32 %ab, %cd
  ret i32 %sum
}
