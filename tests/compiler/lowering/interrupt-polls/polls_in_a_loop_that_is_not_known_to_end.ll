; Nothing outside of an endless loop can end its thread. So its header loads a word of the launch that is normally 0,
; else calls the runtime, and returns if the launch is to end. A coroutine records that it has returned.
; RUN: kiln-opt --passes=interrupt-polls %s | FileCheck %s
; RUN: kiln-opt --passes=interrupt-polls --function=__kiln_waits %s | FileCheck %s --check-prefix=COROUTINE

; CHECK-LABEL: define void @__kiln_waits(
; CHECK: entry:
; CHECK: %[[WORD:.*]] = load ptr, ptr %{{.*}}, !invariant.load
; CHECK: loop:
; CHECK: %[[SET:.*]] = load volatile i32, ptr %[[WORD]]
; CHECK-NEXT: %[[IS_SET:.*]] = icmp ne i32 %[[SET]], 0
; CHECK-NEXT: br i1 %[[IS_SET]], label %attend, label %[[REST:.*]], !prof
; CHECK: [[REST]]:
; CHECK: load volatile i32, ptr %flag
; CHECK: attend:
; CHECK-NEXT: %[[ENDED:.*]] = call i32 @{{.*}}(ptr %launch)
; CHECK-NEXT: %[[IS_ENDED:.*]] = icmp ne i32 %[[ENDED]], 0
; CHECK-NEXT: br i1 %[[IS_ENDED]], label %leave, label %[[REST]], !prof
; CHECK: leave:
; CHECK-NEXT: ret void

; COROUTINE: leave:
; COROUTINE: store i32 {{.*}}, ptr %{{.*}}
; COROUTINE-NEXT: ret void
define void @__kiln_waits(ptr %launch, ptr %thread, ptr %flag) {
entry:
  br label %loop
loop:
  %f = load volatile i32, ptr %flag
  %again = icmp eq i32 %f, 0
  br i1 %again, label %loop, label %done
done:
  ret void
}
