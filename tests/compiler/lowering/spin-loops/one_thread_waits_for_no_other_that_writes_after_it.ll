; Only one thread of the threadgroup reaches the loop and the write after it, so that no other thread of its threadgroup
; can end its wait. If the comparison leaves more than one thread, one may wait for another.
; RUN: kiln-opt --passes=spin-loops %s | FileCheck %s

; CHECK-DAG: ; first_thread: does not wait
; CHECK-DAG: ; all_but_the_first: waits in a loop

declare i32 @__kiln_value(i32) memory(none)

define void @first_thread(ptr %mutex) {
entry:
  %x = call i32 @__kiln_value(i32 0)
  %is_first = icmp eq i32 %x, 0
  br i1 %is_first, label %before, label %done
before:
  br label %spin
spin:
  %pair = cmpxchg ptr %mutex, i32 0, i32 1 monotonic monotonic
  %old = extractvalue { i32, i1 } %pair, 0
  %failed = icmp ne i32 %old, 0
  br i1 %failed, label %spin, label %owner
owner:
  %release = atomicrmw xchg ptr %mutex, i32 0 monotonic
  br label %done
done:
  ret void
}

define void @all_but_the_first(ptr %mutex) {
entry:
  %x = call i32 @__kiln_value(i32 0)
  %is_first = icmp eq i32 %x, 0
  br i1 %is_first, label %done, label %before
before:
  br label %spin
spin:
  %pair = cmpxchg ptr %mutex, i32 0, i32 1 monotonic monotonic
  %old = extractvalue { i32, i1 } %pair, 0
  %failed = icmp ne i32 %old, 0
  br i1 %failed, label %spin, label %owner
owner:
  %release = atomicrmw xchg ptr %mutex, i32 0 monotonic
  br label %done
done:
  ret void
}
