; The cast to the parameter's space is made once. Where it is there already, later runs use it.
; RUN: kiln-opt --passes=parameter-loads,instcombine,parameter-loads %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: define i32 @kernel(
; CHECK-COUNT-1: addrspacecast ptr %parameter to ptr addrspace(101)
; CHECK-NOT: addrspacecast
; CHECK-DAG: getelementptr inbounds i8, ptr addrspace(101) %{{.+}}, i64 8
; CHECK-DAG: getelementptr inbounds i8, ptr addrspace(101) %{{.+}}, i64 16
; CHECK: ret i32
define i32 @kernel(ptr byval([64 x i8]) %parameter) {
  %generic = call ptr asm "cvta.param.u64 $0, parameter;", "=l"()
  %at = getelementptr i8, ptr %generic, i64 8
  %a = load i32, ptr %at
  %two = shl i64 1, 4
  %further = getelementptr i8, ptr %generic, i64 %two
  %b = load i32, ptr %further
  %sum = add i32 %a, %b
  ret i32 %sum
}
