; A loop with two back edges yields at each of them. A latch that is one of two edges to the header does so once, and
; the loop around it that counts does not.
; RUN: kiln-opt --passes=yields %s | FileCheck %s

; CHECK-LABEL: define void @two_latches(
; CHECK: outer:
; CHECK-NOT: @__kiln_yield
; CHECK: spin:
; CHECK-NOT: @__kiln_yield
; CHECK: one:
; CHECK-NEXT: call void @__kiln_yield(i32 0)
; CHECK-NEXT: br label %spin
; CHECK: other:
; CHECK-NEXT: call void @__kiln_yield(i32 0)
; CHECK-NEXT: switch i32 %old, label %spin
; CHECK-NOT: call void @__kiln_yield
; CHECK: ret void
define void @two_latches(ptr %mutex, i1 %c, i32 %n) {
entry:
  br label %outer
outer:
  %i = phi i32 [ 0, %entry ], [ %i.next, %owner ]
  br label %spin
spin:
  %pair = cmpxchg ptr %mutex, i32 0, i32 1 monotonic monotonic
  %old = extractvalue { i32, i1 } %pair, 0
  %failed = icmp ne i32 %old, 0
  br i1 %failed, label %retry, label %owner
retry:
  br i1 %c, label %one, label %other
one:
  br label %spin
other:
  switch i32 %old, label %spin [ i32 7, label %spin ]
owner:
  %release = atomicrmw xchg ptr %mutex, i32 0 monotonic
  %i.next = add i32 %i, 1
  %again = icmp ult i32 %i.next, %n
  br i1 %again, label %outer, label %done
done:
  ret void
}
