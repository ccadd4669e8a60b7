; With a known number of simdgroups the sizes of a full threadgroup are numbers, and those of each threadgroup if all are
; full. Other sizes are read, and are not 0: a loop that adds them ends.
; RUN: kiln-opt --passes=positions --simdgroups=4 --row-threads=64 %s | FileCheck %s --check-prefixes=CHECK,EDGE
; RUN: kiln-opt --passes=positions --simdgroups=4 --row-threads=64 --threadgroups-are-even %s | FileCheck %s --check-prefixes=CHECK,EVEN
; RUN: kiln-opt --passes=positions --simdgroups=4 %s | FileCheck %s --check-prefix=ROW
; RUN: kiln-opt --passes=positions %s | FileCheck %s --check-prefix=ANY

declare i32 @__kiln_value(i32)

; CHECK-LABEL: define i32 @full_y(
; CHECK-NEXT: ret i32 2
; ROW-LABEL: define i32 @full_y(
; ROW-NEXT: ret i32 1
; ANY-LABEL: define i32 @full_y(
; ANY: load i32, ptr %{{.+}}, !range ![[SIZES:[0-9]+]], !invariant.load
define i32 @full_y(ptr %launch, ptr %record, ptr %frame, i32 %at, i32 %lanes) {
  %v = call i32 @__kiln_value(i32 10)
  ret i32 %v
}

; CHECK-LABEL: define i32 @threads_y(
; EVEN-NEXT: ret i32 2
; EDGE: load i32, ptr %{{.+}}, !range
; ROW-LABEL: define i32 @threads_y(
; ROW-NEXT: ret i32 1
; ANY-LABEL: define i32 @threads_y(
; ANY: load i32, ptr %{{.+}}, !range ![[SIZES]], !invariant.load
define i32 @threads_y(ptr %launch, ptr %record, ptr %frame, i32 %at, i32 %lanes) {
  %v = call i32 @__kiln_value(i32 7)
  ret i32 %v
}

; CHECK-LABEL: define i32 @threads_z(
; CHECK-NEXT: ret i32 1
; ROW-LABEL: define i32 @threads_z(
; ROW-NEXT: ret i32 1
; ANY-LABEL: define i32 @threads_z(
; ANY: load i32, ptr %{{.+}}, !range ![[SIZES]], !invariant.load
define i32 @threads_z(ptr %launch, ptr %record, ptr %frame, i32 %at, i32 %lanes) {
  %v = call i32 @__kiln_value(i32 8)
  ret i32 %v
}

; ROW-LABEL: define i32 @full_x(
; ROW-NEXT: ret i32 128
; ANY-LABEL: define i32 @full_x(
define i32 @full_x(ptr %launch, ptr %record, ptr %frame, i32 %at, i32 %lanes) {
  %v = call i32 @__kiln_value(i32 9)
  ret i32 %v
}

; ROW-LABEL: define i32 @threads_x(
; ROW: load i32
; ANY-LABEL: define i32 @threads_x(
define i32 @threads_x(ptr %launch, ptr %record, ptr %frame, i32 %at, i32 %lanes) {
  %v = call i32 @__kiln_value(i32 6)
  ret i32 %v
}

; Where in the grid a threadgroup is may be 0. Neither has 32 bits.
; ANY-LABEL: define i32 @threadgroup(
; ANY: load i32, ptr %{{.+}}, !range ![[PLACE:[0-9]+]], !invariant.load
; ANY-LABEL: define i32 @threadgroups(
; ANY: load i32, ptr %{{.+}}, !range ![[NOT_ZERO:[0-9]+]], !invariant.load
; ANY-DAG: ![[SIZES]] = !{i32 1, i32 1025}
; ANY-DAG: ![[PLACE]] = !{i32 0, i32 2147483647}
; ANY-DAG: ![[NOT_ZERO]] = !{i32 1, i32 -2147483648}
define i32 @threadgroup(ptr %launch, ptr %record, ptr %frame, i32 %at, i32 %lanes) {
  %v = call i32 @__kiln_value(i32 3)
  ret i32 %v
}
define i32 @threadgroups(ptr %launch, ptr %record, ptr %frame, i32 %at, i32 %lanes) {
  %v = call i32 @__kiln_value(i32 15)
  ret i32 %v
}
