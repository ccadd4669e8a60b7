; Passes may have folded an address in the sink to a constant. It becomes an instruction on the variable again, also
; where a phi selects it.
; RUN: kiln-opt --passes=restore-sinks %s | FileCheck %s

; CHECK-NOT: @__kiln_sink
@__kiln_sink = external global [64 x i8], align 16

; CHECK-LABEL: define void @body(
; CHECK: entry:
; CHECK: %[[SINK:.*]] = alloca [64 x i8], align 16
; CHECK-DAG: %[[AT4:.*]] = getelementptr i8, ptr %[[SINK]], i64 4
; CHECK-DAG: %[[AT8:.*]] = getelementptr i8, ptr %[[SINK]], i64 8
; CHECK-DAG: store i32 1, ptr %[[AT4]]
; CHECK-DAG: phi ptr [ %x, %then ], [ %[[AT8]], %entry ]
define void @body(ptr %x, i1 %c) {
entry:
  store i32 1, ptr getelementptr (i8, ptr @__kiln_sink, i64 4)
  br i1 %c, label %then, label %done
then:
  br label %done
done:
  %to = phi ptr [ %x, %then ], [ getelementptr (i8, ptr @__kiln_sink, i64 8), %entry ]
  store i32 2, ptr %to
  ret void
}
