; Writes that all threads have done before the last barrier ahead of the loop are over. With a write behind the barrier
; too, the loop may wait for it. A loop with a barrier in each iteration is none.
; RUN: kiln-opt --passes=spin-loops %s | FileCheck %s

; CHECK-DAG: ; set_before: does not wait
; CHECK-DAG: ; set_behind: waits in a loop
; CHECK-DAG: ; barrier_in_the_loop: does not wait

declare void @__kiln_threadgroup_barrier(i32) convergent

define void @set_before(ptr %flag) {
entry:
  store volatile i32 1, ptr %flag
  call void @__kiln_threadgroup_barrier(i32 1) convergent
  br label %wait
wait:
  %f = load volatile i32, ptr %flag
  %unset = icmp eq i32 %f, 0
  br i1 %unset, label %wait, label %done
done:
  ret void
}

define void @set_behind(ptr %flag) {
entry:
  call void @__kiln_threadgroup_barrier(i32 1) convergent
  br label %wait
wait:
  %f = load volatile i32, ptr %flag
  %unset = icmp eq i32 %f, 0
  br i1 %unset, label %wait, label %done
done:
  store volatile i32 1, ptr %flag
  ret void
}

define void @barrier_in_the_loop(ptr %flag) {
entry:
  br label %wait
wait:
  call void @__kiln_threadgroup_barrier(i32 1) convergent
  %f = load volatile i32, ptr %flag
  %unset = icmp eq i32 %f, 0
  br i1 %unset, label %wait, label %done
done:
  store volatile i32 1, ptr %flag
  ret void
}
