; The clone is internal and so dso_local, also where the original is external.
; RUN: kiln-opt --passes=function-versioning --fewest=1 %s | FileCheck %s

; CHECK: define internal i1 @f.whole(
define void @f(ptr %launch, i64 %first, ptr %frame, i32 %x, i32 %lanes) {
entry:
  %check = icmp ult i64 %first, 100
  br i1 %check, label %fast, label %slow, !prof !0, !kiln.likely !1
fast:
  store i8 1, ptr %frame
  br label %end
slow:
  store i8 2, ptr %frame
  br label %end
end:
  ret void
}

!0 = !{!"branch_weights", i32 1000, i32 1}
!1 = !{}
