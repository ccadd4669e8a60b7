; Part of a row of threads: its x, a multiple of 32, and how many rows it is after the record's.
; RUN: kiln-opt --passes=positions %s | FileCheck %s

declare i32 @__kiln_value(i32)

; CHECK-LABEL: define i32 @x(
; CHECK-DAG: %[[FIRST:.+]] = and i32 %x, -32
; CHECK-DAG: %[[LANE:.+]] = call i32 @__kiln_lane()
; CHECK: or disjoint i32 %[[FIRST]], %[[LANE]]
define i32 @x(ptr %launch, ptr %record, i32 %half, i32 %row, i32 %x, i32 %lanes) {
  %v = call i32 @__kiln_value(i32 0)
  ret i32 %v
}

; CHECK-LABEL: define i32 @y(
; CHECK: getelementptr inbounds i32, ptr %record, i32 1
; CHECK: %[[RECORDED:.+]] = load i32, {{.*}}!invariant.load
; CHECK: add i32 %[[RECORDED]], %row
define i32 @y(ptr %launch, ptr %record, i32 %half, i32 %row, i32 %x, i32 %lanes) {
  %v = call i32 @__kiln_value(i32 1)
  ret i32 %v
}

; CHECK-LABEL: define i32 @index(
; CHECK-DAG: getelementptr inbounds i32, ptr %record, i32 18
; CHECK-DAG: add i32 %{{.+}}, %x
; CHECK-DAG: getelementptr inbounds i32, ptr %record, i32 6
; CHECK-DAG: mul i32 %row, %{{.+}}
; CHECK-DAG: call i32 @__kiln_lane()
define i32 @index(ptr %launch, ptr %record, i32 %half, i32 %row, i32 %x, i32 %lanes) {
  %v = call i32 @__kiln_value(i32 18)
  ret i32 %v
}
