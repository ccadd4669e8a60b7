; A loop that retries, or that counts, does not wait for a thread, and yields to none.
; RUN: kiln-opt --passes=yields %s | FileCheck %s

; CHECK-NOT: @__kiln_yield

; CHECK-LABEL: define void @retries(
; CHECK: ret void
define void @retries(ptr %p, i32 %n) {
entry:
  %first = load i32, ptr %p
  br label %again
again:
  %assumed = phi i32 [ %first, %entry ], [ %old, %again ]
  %new = add i32 %assumed, %n
  %pair = cmpxchg ptr %p, i32 %assumed, i32 %new monotonic monotonic
  %old = extractvalue { i32, i1 } %pair, 0
  %failed = icmp ne i32 %old, %assumed
  br i1 %failed, label %again, label %done
done:
  %other = atomicrmw add ptr %p, i32 1 monotonic
  ret void
}

; CHECK-LABEL: define void @counts(
; CHECK: ret void
define void @counts(ptr %y, i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  store i32 %i, ptr %y
  %i.next = add i32 %i, 1
  %again = icmp ult i32 %i.next, %n
  br i1 %again, label %loop, label %done
done:
  ret void
}

; CHECK-NOT: @__kiln_yield
