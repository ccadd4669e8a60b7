; Loads of a launch's arguments come before the entry block's first write, wherever they were; those of the entry block
; behind a write, too.
; RUN: kiln-opt --passes=threadgroup-versioning %s | FileCheck %s

; CHECK-LABEL: define void @limits(
; CHECK: %arguments = load ptr, ptr
; CHECK: %limit = load i64
; CHECK: icmp ult i64 %index, %limit
; CHECK: br i1 %{{.*}}, label %{{.*}}, label %apart
; CHECK: store float 0.0
define void @limits(ptr %launch, ptr %p0, i64 %index) {
entry:
  store float 0.0, ptr %p0
  %arguments = load ptr, ptr %launch, !invariant.load !1
  br label %after
after:
  %limit.at = getelementptr i8, ptr %arguments, i64 16
  %limit = load i64, ptr %limit.at, !invariant.load !1
  %check = icmp ult i64 %index, %limit
  br i1 %check, label %fast, label %slow, !prof !0, !kiln.likely !1
fast:
  store float 1.0, ptr %p0
  br label %end
slow:
  store float 2.0, ptr %p0
  br label %end
end:
  ret void
}

!0 = !{!"branch_weights", i32 1000, i32 1}
!1 = !{}
