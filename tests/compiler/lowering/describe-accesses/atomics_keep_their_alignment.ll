; With less than their size, LLVM would call functions for atomic operations. Of variables, as much alignment is kept as
; can be proved: what is known of the variable and of the offset in it.
; RUN: kiln-opt --passes=describe-accesses --parameters=out:1 %s | FileCheck %s

@tile = internal global [64 x i32] undef, section "kiln.threadgroup", align 4

; CHECK-LABEL: define void @body(
; CHECK: atomicrmw add ptr %y, i32 1 monotonic, align 4
; CHECK: load atomic i32, ptr %y monotonic, align 4
; CHECK: store atomic i32 2, ptr %y monotonic, align 4
; CHECK: load i32, ptr %y, align 1
define void @body(ptr %y, i64 %y.first, i64 %y.end, ptr %thread) {
  %old = atomicrmw add ptr %y, i32 1 monotonic, align 4
  %a = load atomic i32, ptr %y monotonic, align 4
  store atomic i32 2, ptr %y monotonic, align 4
  %b = load i32, ptr %y, align 4
  ret void
}

; Threadgroup variables begin at a multiple of 16 bytes.
; CHECK-LABEL: define void @threadgroup_memory(
; CHECK: load <4 x i32>, ptr @tile, align 16
; CHECK: load <4 x i32>, ptr %quad, align 16
; CHECK: load <4 x i32>, ptr %pair, align 8
; CHECK: load <4 x i32>, ptr %element, align 4
define void @threadgroup_memory(ptr %y, i64 %y.first, i64 %y.end, ptr %thread, i64 %i) {
  %a = load <4 x i32>, ptr @tile, align 16
  %quad = getelementptr [4 x i32], ptr @tile, i64 %i
  %b = load <4 x i32>, ptr %quad, align 16
  %pair = getelementptr [2 x i32], ptr @tile, i64 %i
  %c = load <4 x i32>, ptr %pair, align 16
  %element = getelementptr i32, ptr @tile, i64 %i
  %d = load <4 x i32>, ptr %element, align 16
  ret void
}
