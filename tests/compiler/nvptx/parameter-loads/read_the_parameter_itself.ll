; The block of arguments is a parameter of the kernel. An address of it that went through a generic pointer is one of the
; parameter's own space, where loads are of constants.
; RUN: kiln-opt --passes=parameter-loads %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: define i32 @kernel(
; CHECK: %block = addrspacecast ptr %parameter to ptr addrspace(101)
; CHECK: %[[AT:.+]] = getelementptr inbounds i8, ptr addrspace(101) %block, i64 24
; CHECK: load i32, ptr addrspace(101) %[[AT]]
define i32 @kernel(ptr byval([64 x i8]) %parameter) {
  %generic = call ptr asm "cvta.param.u64 $0, parameter;", "=l"()
  %at = getelementptr i8, ptr %generic, i64 24
  %value = load i32, ptr %at
  ret i32 %value
}
