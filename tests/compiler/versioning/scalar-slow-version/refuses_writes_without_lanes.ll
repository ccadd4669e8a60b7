; The lanes of these stores are not known: one number of the last lane, and registers of interleaved elements.
; RUN: kiln-opt --passes=scalar-slow-version %s | FileCheck %s

; CHECK: ; group.whole: no
; CHECK: ; pairs.whole: no
; CHECK: ; halves.whole: no
; CHECK: ; every.second.whole: no
define internal i1 @group.whole(ptr %launch, ptr %first, i32 %half, i32 %row, i32 %x, i32 %lanes) {
entry:
  %p = load ptr, ptr %launch, !invariant.load !0
  %limit = load i64, ptr %first, !invariant.load !0
  %offset = zext i32 %x to i64
  %inside = icmp ult i64 %offset, %limit
  br i1 %inside, label %in, label %out
in:
  %v = load <32 x float>, ptr %p
  %last = extractelement <32 x float> %v, i64 31
  store float %last, ptr %p, align 4
  ret i1 true
out:
  ret i1 false
}

define internal i1 @pairs.whole(ptr %launch, ptr %first, i32 %half, i32 %row, i32 %x, i32 %lanes) {
entry:
  %p = load ptr, ptr %launch, !invariant.load !0
  %limit = load i64, ptr %first, !invariant.load !0
  %offset = zext i32 %x to i64
  %inside = icmp ult i64 %offset, %limit
  br i1 %inside, label %in, label %out
in:
  %v = load <64 x float>, ptr %p
  store <64 x float> %v, ptr %p, align 4
  ret i1 true
out:
  ret i1 false
}

; 32 elements of 16 lanes, and 4 elements under a mask of their own.
define internal i1 @halves.whole(ptr %launch, ptr %first, i32 %half, i32 %row, i32 %x, i32 %lanes) {
entry:
  %p = load ptr, ptr %launch, !invariant.load !0
  %limit = load i64, ptr %first, !invariant.load !0
  %offset = zext i32 %x to i64
  %inside = icmp ult i64 %offset, %limit
  br i1 %inside, label %in, label %out
in:
  %v = load <32 x half>, ptr %p
  store <32 x half> %v, ptr %p, align 4
  ret i1 true
out:
  ret i1 false
}

define internal i1 @every.second.whole(ptr %launch, ptr %first, i32 %half, i32 %row, i32 %x, i32 %lanes) {
entry:
  %p = load ptr, ptr %launch, !invariant.load !0
  %limit = load i64, ptr %first, !invariant.load !0
  %offset = zext i32 %x to i64
  %inside = icmp ult i64 %offset, %limit
  br i1 %inside, label %in, label %out
in:
  %v = load <4 x float>, ptr %p
  call void @llvm.masked.store.v4f32.p0(<4 x float> %v, ptr %p, i32 4, <4 x i1> <i1 1, i1 0, i1 1, i1 0>)
  ret i1 true
out:
  ret i1 false
}

declare void @llvm.masked.store.v4f32.p0(<4 x float>, ptr, i32, <4 x i1>)

!0 = !{}
