; A thread that waits for another one lets the others run before each further attempt.
; RUN: kiln-opt --passes=yields %s | FileCheck %s

; CHECK-LABEL: define void @lock(
; CHECK: spin:
; CHECK: %failed = icmp ne i32 %old, 0
; CHECK-NEXT: call void @__kiln_yield(i32 0)
; CHECK-NEXT: br i1 %failed, label %spin, label %owner
; CHECK-NOT: @__kiln_yield
; CHECK: ret void
define void @lock(ptr %mutex) {
entry:
  br label %spin
spin:
  %pair = cmpxchg ptr %mutex, i32 0, i32 1 monotonic monotonic
  %old = extractvalue { i32, i1 } %pair, 0
  %failed = icmp ne i32 %old, 0
  br i1 %failed, label %spin, label %owner
owner:
  %release = atomicrmw xchg ptr %mutex, i32 0 monotonic
  ret void
}
