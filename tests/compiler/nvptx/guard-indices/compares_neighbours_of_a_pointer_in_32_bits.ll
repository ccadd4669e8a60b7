; Pointers at constant distances, in an array below 2 GiB: the largest offset is saturated to 32 bits, the others are that
; less a constant. One alone is not cheaper so, and neither are two in an array of unknown size.
; RUN: kiln-opt --passes=guard-indices %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: @neighbours(
; CHECK: %[[LARGEST:.*]] = add i64 %{{.*}}, 4
; CHECK: %[[SATURATED:.*]] = call i64 @llvm.umin.i64(i64 %[[LARGEST]], i64 4294967295)
; CHECK: %[[OFFSET:.*]] = trunc i64 %[[SATURATED]] to i32
; CHECK: %[[LEFT:.*]] = sub i32 %[[OFFSET]], 8
; CHECK: icmp ult i32 %[[LEFT]], %[[END:.*]]
; CHECK: icmp ult i32 %{{.*}}, %[[END]]
define i1 @neighbours(ptr addrspace(101) %block, ptr addrspace(1) %base, i64 %from) {
  %low = load i32, ptr addrspace(101) %block
  %end = zext i32 %low to i64
  %start = ptrtoint ptr addrspace(1) %base to i64
  %p = getelementptr i8, ptr addrspace(1) %base, i64 %from
  %left = getelementptr i8, ptr addrspace(1) %p, i64 -4
  %right = getelementptr i8, ptr addrspace(1) %p, i64 4
  %a = ptrtoint ptr addrspace(1) %left to i64
  %b = sub i64 %a, %start
  %one = icmp ult i64 %b, %end
  %c = ptrtoint ptr addrspace(1) %right to i64
  %d = sub i64 %c, %start
  %other = icmp ult i64 %d, %end
  %both = and i1 %one, %other
  ret i1 %both
}

; CHECK-LABEL: @single(
; CHECK: icmp ult i64
define i1 @single(ptr addrspace(101) %block, i64 %from) {
  %low = load i32, ptr addrspace(101) %block
  %end = zext i32 %low to i64
  %offset = add i64 %from, 4
  %inside = icmp ult i64 %offset, %end
  ret i1 %inside
}

; CHECK-LABEL: @long(
; CHECK: icmp ult i64
; CHECK: icmp ult i64
define i1 @long(ptr addrspace(101) %block, i64 %from) {
  %end = load i64, ptr addrspace(101) %block
  %offset = add i64 %from, 4
  %one = icmp ult i64 %offset, %end
  %next = add i64 %from, 8
  %other = icmp ult i64 %next, %end
  %both = and i1 %one, %other
  ret i1 %both
}
