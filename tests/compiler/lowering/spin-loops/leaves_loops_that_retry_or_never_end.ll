; A compare-exchange that expects what it has found ends at the second attempt if no thread interferes, and otherwise
; another thread has succeeded. A flag that the body does not write is another threadgroup's, and plain loads and counters are
; not waited for.
; RUN: kiln-opt --passes=spin-loops %s | FileCheck %s

; CHECK-DAG: ; retries: does not wait
; CHECK-DAG: ; flag_of_others: does not wait
; CHECK-DAG: ; counts: does not wait

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

define void @flag_of_others(ptr %flag, ptr %y) {
entry:
  store i32 1, ptr %y
  br label %wait
wait:
  %f = load volatile i32, ptr %flag
  %unset = icmp eq i32 %f, 0
  br i1 %unset, label %wait, label %done
done:
  ret void
}

define void @counts(ptr %y, i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  %old = atomicrmw add ptr %y, i32 1 monotonic
  %i.next = add i32 %i, 1
  %again = icmp ult i32 %i.next, %n
  br i1 %again, label %loop, label %done
done:
  ret void
}
