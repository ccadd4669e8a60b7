; The frame holds a value that is used after a wait, and none that is used before it alone or computed after it. A
; thread that never waits needs no frame.
; RUN: kiln-opt --passes=suspend-points %s | FileCheck %s

declare i64 @__kiln_wait(i32, i64, i64)

; CHECK: live_across: frame of 4 bytes
; CHECK: live_on_one_side: frame of 0 bytes
; CHECK: never_waits: frame of 0 bytes

; CHECK-LABEL: @live_across(
; CHECK: store float %square, ptr
; CHECK-NEXT: ret void
define void @live_across(ptr %launch, ptr %record, ptr %frame, float %x) {
  %square = fmul float %x, %x
  %result = call i64 @__kiln_wait(i32 0, i64 0, i64 0)
  store float %square, ptr %launch
  ret void
}

; CHECK-LABEL: @live_on_one_side(
; CHECK-NOT: i8, ptr %frame,
; CHECK: store float %square, ptr %launch
; CHECK-NOT: i8, ptr %frame,
; CHECK: store float %cube, ptr %launch
define void @live_on_one_side(ptr %launch, ptr %record, ptr %frame, float %x) {
  %square = fmul float %x, %x
  store float %square, ptr %launch
  %result = call i64 @__kiln_wait(i32 0, i64 0, i64 0)
  %twice = fadd float %x, %x
  %cube = fmul float %twice, %x
  store float %cube, ptr %launch
  ret void
}

; CHECK-LABEL: @never_waits(
; CHECK-NOT: i32 1, label
; CHECK: store float %square, ptr %launch
; CHECK: store i32 0, ptr
; CHECK: ret void
define void @never_waits(ptr %launch, ptr %record, ptr %frame, float %x) {
  %square = fmul float %x, %x
  store float %square, ptr %launch
  ret void
}
