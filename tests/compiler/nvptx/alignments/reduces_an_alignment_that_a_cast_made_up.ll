; `*(device half2*)((device half*)x + 1)`: the type says 4 bytes, but the address is known to be a multiple of 2 only.
; The access gets the alignment that follows from its array's and from the offset.
; RUN: kiln-opt --passes=alignments %s | FileCheck %s

target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: @load(
; CHECK: load <2 x half>, ptr %address, align 2
define <2 x half> @load(ptr align 16 %x) {
  %address = getelementptr half, ptr %x, i64 1
  %value = load <2 x half>, ptr %address, align 4
  ret <2 x half> %value
}

; CHECK-LABEL: @store(
; CHECK: store <4 x float> %value, ptr %address, align 8
define void @store(ptr align 16 %x, i64 %i, <4 x float> %value) {
  %address = getelementptr [2 x float], ptr %x, i64 %i
  store <4 x float> %value, ptr %address, align 16
  ret void
}

; The second field of a structure begins at 4.
; CHECK-LABEL: @field(
; CHECK: load i64, ptr %address, align 4
define i64 @field(ptr align 16 %x) {
  %address = getelementptr { i32, i32 }, ptr %x, i32 0, i32 1
  %value = load i64, ptr %address, align 8
  ret i64 %value
}

; Nothing is known about the array.
; CHECK-LABEL: @unknown(
; CHECK: load i32, ptr %x, align 1
define i32 @unknown(ptr %x) {
  %value = load i32, ptr %x, align 4
  ret i32 %value
}
