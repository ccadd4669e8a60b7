; A check of bounds fails at the ends of an array. Which side of a piecewise index all lanes are on is checked too, and
; that may fail in each simdgroup.
; RUN: kiln-opt --passes=scalar-slow-version %s | FileCheck %s

; CHECK: ; group.whole: no
; CHECK-NOT: masked.store
define internal i1 @group.whole(ptr %launch, ptr %first, i32 %half, i32 %row, i32 %x, i32 %lanes) {
entry:
  %p = load ptr, ptr %launch, !invariant.load !0
  %limit = load i64, ptr %first, !invariant.load !0
  %offset = zext i32 %x to i64
  %inside = icmp ult i64 %offset, %limit
  %one.side = icmp slt i32 %x, 100
  %all = and i1 %inside, %one.side
  br i1 %all, label %in, label %out
in:
  %v = load <32 x float>, ptr %p
  store <32 x float> %v, ptr %p, align 4
  ret i1 true
out:
  ret i1 false
}

!0 = !{}
