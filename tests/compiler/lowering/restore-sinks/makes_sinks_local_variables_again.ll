; After the passes on one thread's code each thread has its own sink again: a variable with the same size and alignment
; at the function's entry.
; RUN: kiln-opt --passes=restore-sinks %s | FileCheck %s

; CHECK-NOT: @__kiln_sink
@__kiln_sink = external global [64 x i8], align 16
@__kiln_sink.1 = external global [128 x i8], align 64

; CHECK-LABEL: define void @body(
; CHECK: entry:
; CHECK-DAG: %[[SMALL:.*]] = alloca [64 x i8], align 16
; CHECK-DAG: %[[LARGE:.*]] = alloca [128 x i8], align 64
; CHECK: then:
; CHECK-NEXT: %one = select i1 %d, ptr %x, ptr %[[SMALL]]
; CHECK: select i1 %d, ptr %x, ptr %[[LARGE]]
; CHECK: ret void
define void @body(ptr %x, i1 %c, i1 %d) {
entry:
  br i1 %c, label %then, label %done
then:
  %one = select i1 %d, ptr %x, ptr @__kiln_sink
  store i32 1, ptr %one
  %two = select i1 %d, ptr %x, ptr @__kiln_sink.1
  store i32 2, ptr %two
  br label %done
done:
  ret void
}
; CHECK-NOT: @__kiln_sink
