; For a known number of simdgroups, frames of 16 KiB in all are a stack variable, which can become registers. For one
; simdgroup more the caller gives them: 64 bytes for each of 256 are just 16 KiB. With a number that is known the
; loops end at it.
; RUN: kiln-opt --passes=simdgroup-loops --simdgroups=256 %s | FileCheck %s --check-prefixes=CHECK,STACK
; RUN: kiln-opt --passes=simdgroup-loops --simdgroups=257 %s | FileCheck %s --check-prefixes=CHECK,CALLER

declare i64 @__kiln_wait(i32, i64, i64)

; STACK: simdgroup-loops: frame of 0 bytes
; CALLER: simdgroup-loops: frame of 64 bytes
; CHECK-LABEL: define void @__kiln_threadgroup(
; STACK: %[[FRAMES:.+]] = alloca [16384 x i8], align 64
; CALLER-NOT: alloca
; STACK: icmp ult i32 %{{.+}}, 256
; CALLER: icmp ult i32 %{{.+}}, 257
; CHECK: ret void
define void @simdgroup(ptr %launch, ptr %record, ptr %frame, i32 %x, i32 %lanes) {
  %data = load ptr, ptr %launch, !invariant.load !0
  %own = getelementptr float, ptr %data, i32 %x
  %value = load <8 x float>, ptr %own
  %unused = call i64 @__kiln_wait(i32 0, i64 0, i64 0)
  %twice = fadd <8 x float> %value, %value
  store <8 x float> %twice, ptr %own
  ret void
}

!0 = !{}
