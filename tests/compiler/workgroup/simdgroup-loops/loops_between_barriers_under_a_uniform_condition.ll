; The same branch on the threadgroup's position is taken by all of its simdgroups: it runs once, between loops. A loop
; around a barrier whose trip count is the same for all stays a loop around both parts.
; RUN: kiln-opt --passes=simdgroup-loops %s | FileCheck %s

declare i64 @__kiln_wait(i32, i64, i64)

; CHECK: simdgroup-loops: frame of 0 bytes
; CHECK-LABEL: define void @__kiln_threadgroup(
; CHECK-SAME: i32 %[[COUNT:[^,)]+]])
; CHECK: br i1 %is_first, label
; CHECK: %i = phi i32
; CHECK: phi i32 [ 0, %loop ]
; CHECK: store i32 %i
; CHECK: icmp ult i32 %{{.+}}, %[[COUNT]]
; CHECK: phi i32 [ 0, %barrier ]
; CHECK: store i32 7
; CHECK: icmp ult i32 %{{.+}}, %[[COUNT]]
; CHECK: br i1 %more, label
; CHECK-NOT: __kiln_wait
; CHECK: ret void
define void @simdgroup(ptr %launch, ptr %record, ptr %frame, i32 %x, i32 %lanes) {
entry:
  %data = load ptr, ptr %launch, !invariant.load !0
  %own = getelementptr i32, ptr %data, i32 %x
  %group.at = getelementptr i8, ptr %record, i64 12
  %group = load i32, ptr %group.at, !invariant.load !0
  %is_first = icmp eq i32 %group, 0
  br i1 %is_first, label %loop, label %end
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  store i32 %i, ptr %own
  %unused = call i64 @__kiln_wait(i32 0, i64 0, i64 0)
  store i32 7, ptr %own
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, 4
  br i1 %more, label %loop, label %end
end:
  ret void
}

!0 = !{}
