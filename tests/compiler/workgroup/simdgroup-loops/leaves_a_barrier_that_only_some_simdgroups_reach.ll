; Whether the barrier is reached depends on the simdgroup's place: they may take different paths to their barriers, so
; there is no function for the threadgroup.
; RUN: kiln-opt --passes=simdgroup-loops %s | FileCheck %s
; RUN: kiln-opt --passes=simdgroup-loops --remarks %s 2>&1 | FileCheck %s --check-prefix=REMARK

; REMARK: remark: simdgroup-loops: simdgroups suspend at barriers: this branch decides whether one is reached, and simdgroups may differ in it
; REMARK-NOT: remark:

declare i64 @__kiln_wait(i32, i64, i64)

; CHECK: simdgroup-loops: not possible
; CHECK-NOT: define
define void @simdgroup(ptr %launch, ptr %record, ptr %frame, i32 %x, i32 %lanes) {
entry:
  %is_first = icmp eq i32 %x, 0
  br i1 %is_first, label %wait, label %end
wait:
  %unused = call i64 @__kiln_wait(i32 0, i64 0, i64 0)
  br label %end
end:
  ret void
}
