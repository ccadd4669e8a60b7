; What is the same for all simdgroups of the threadgroup stays as it is and needs no frame. An address that takes few
; instructions from a simdgroup's place is computed again behind the barrier.
; RUN: kiln-opt --passes=simdgroup-loops %s | FileCheck %s

declare i64 @__kiln_wait(i32, i64, i64)

; CHECK: simdgroup-loops: frame of 0 bytes
; CHECK-LABEL: define void @__kiln_threadgroup(
; CHECK: %group = load i32
; CHECK: store i32 %group, ptr %own
; CHECK-NOT: load i32, ptr %group.at
; CHECK: %[[PLACE:.+]] = load i32
; CHECK: %[[OWN:.+]] = getelementptr i32, ptr %data, i32 %[[PLACE]]
; CHECK: store i32 %group, ptr %[[OWN]]
; CHECK: ret void
define void @simdgroup(ptr %launch, ptr %record, ptr %frame, i32 %x, i32 %lanes) {
  %data = load ptr, ptr %launch, !invariant.load !0
  %group.at = getelementptr i8, ptr %record, i64 12
  %group = load i32, ptr %group.at, !invariant.load !0
  %own = getelementptr i32, ptr %data, i32 %x
  store i32 %group, ptr %own
  %unused = call i64 @__kiln_wait(i32 0, i64 0, i64 0)
  store i32 %group, ptr %own
  ret void
}

!0 = !{}
