; What a lane without a thread reads may keep it in a loop for ever.
; RUN: kiln-opt --passes=scalar-slow-version %s | FileCheck %s

; CHECK: ; group.whole: no
; CHECK-NOT: masked.store
define internal i1 @group.whole(ptr %launch, ptr %first, i32 %half, i32 %row, i32 %x, i32 %lanes) {
entry:
  %p = load ptr, ptr %launch, !invariant.load !0
  %limit = load i64, ptr %first, !invariant.load !0
  %offset = zext i32 %x to i64
  %inside = icmp ult i64 %offset, %limit
  br i1 %inside, label %in, label %out
in:
  %v = load <32 x float>, ptr %p
  br label %loop
loop:
  %sum = phi <32 x float> [ %v, %in ], [ %next, %loop ]
  %next = fadd <32 x float> %sum, %v
  %less = fcmp olt <32 x float> %next, splat (float 100.0)
  %bits = bitcast <32 x i1> %less to i32
  %any = icmp ne i32 %bits, 0
  br i1 %any, label %loop, label %end
end:
  store <32 x float> %next, ptr %p, align 4
  ret i1 true
out:
  ret i1 false
}

!0 = !{}
