; A thread that spins until a compare-exchange with a constant succeeds, or until a flag is set that other threads of
; the threadgroup set, waits for them: as one vector, the lane that has the lock would wait for the others.
; RUN: kiln-opt --passes=spin-loops %s | FileCheck %s

; CHECK-DAG: ; lock: waits in a loop
; CHECK-DAG: ; flag: waits in a loop

define void @lock(ptr %mutex, ptr %y) {
entry:
  br label %spin
spin:
  %pair = cmpxchg ptr %mutex, i32 0, i32 1 monotonic monotonic
  %old = extractvalue { i32, i1 } %pair, 0
  %failed = icmp ne i32 %old, 0
  br i1 %failed, label %spin, label %owner
owner:
  store i32 1, ptr %y
  %release = atomicrmw xchg ptr %mutex, i32 0 monotonic
  ret void
}

define void @flag(ptr %flag, i1 %c) {
entry:
  br i1 %c, label %set, label %wait
set:
  store volatile i32 1, ptr %flag
  ret void
wait:
  %f = load volatile i32, ptr %flag
  %unset = icmp eq i32 %f, 0
  br i1 %unset, label %wait, label %done
done:
  ret void
}
