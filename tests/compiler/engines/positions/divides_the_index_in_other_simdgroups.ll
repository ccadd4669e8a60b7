; A simdgroup of any threadgroup: the index is divided by the threadgroup's sizes, in floats, unless rows are whole
; simdgroups, whose position is recorded. What is not known of other forms is not used.
; RUN: kiln-opt --passes=positions %s | FileCheck %s --check-prefix=ANY
; RUN: kiln-opt --passes=positions --rows-are-simdgroups %s | FileCheck %s --check-prefix=ROWS
; RUN: kiln-opt --passes=positions --rows-are-simdgroups --row-threads=16 %s | FileCheck %s --check-prefix=ROWS
; RUN: kiln-opt --passes=positions --simdgroups=8 %s | FileCheck %s --check-prefix=KNOWN

declare i32 @__kiln_value(i32)

; ANY-LABEL: define i32 @x(
; ANY-DAG: and i32 %{{.+}}, -32
; ANY-DAG: or disjoint
; ANY: fdiv float 1.000000e+00
; ANY: fptoui float
; ANY: sub i32
; ROWS-LABEL: define i32 @x(
; ROWS-DAG: and i32 %at, -32
; ROWS-DAG: call i32 @__kiln_lane()
; ROWS-NOT: fdiv
; ROWS: ret
define i32 @x(ptr %launch, ptr %record, ptr %frame, i32 %at, i32 %lanes) {
  %v = call i32 @__kiln_value(i32 0)
  ret i32 %v
}

; ANY-LABEL: define i32 @y(
; ANY-COUNT-2: fdiv float 1.000000e+00
; ROWS-LABEL: define i32 @y(
; ROWS-NEXT: %[[Y:.+]] = getelementptr inbounds i32, ptr %record, i32 1
; ROWS-NEXT: %[[RECORDED:.+]] = load i32, ptr %[[Y]]
; ROWS-NEXT: ret i32 %[[RECORDED]]
; KNOWN-LABEL: define i32 @y(
; KNOWN-NEXT: ret i32 0
define i32 @y(ptr %launch, ptr %record, ptr %frame, i32 %at, i32 %lanes) {
  %v = call i32 @__kiln_value(i32 1)
  ret i32 %v
}

; The same for all threads.
; ANY-LABEL: define i32 @threads_of_the_grid(
; ANY-NEXT: %[[AT:.+]] = getelementptr inbounds i32, ptr %record, i32 12
; ANY-NEXT: %[[THREADS:.+]] = load i32, ptr %[[AT]]
; ANY-NEXT: ret i32 %[[THREADS]]
define i32 @threads_of_the_grid(ptr %launch, ptr %record, ptr %frame, i32 %at, i32 %lanes) {
  %v = call i32 @__kiln_value(i32 12)
  ret i32 %v
}
