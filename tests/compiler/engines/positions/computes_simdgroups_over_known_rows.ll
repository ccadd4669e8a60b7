; A simdgroup of a threadgroup whose rows have a known power of two of threads, fewer or more than a simdgroup.
; RUN: kiln-opt --passes=positions --row-threads=16 %s | FileCheck %s --check-prefix=NARROW
; RUN: kiln-opt --passes=positions --row-threads=16 --simdgroups=8 %s | FileCheck %s --check-prefix=KNOWN
; RUN: kiln-opt --passes=positions --row-threads=64 --simdgroups=8 %s | FileCheck %s --check-prefix=WIDE

declare i32 @__kiln_value(i32)

; NARROW-LABEL: define i32 @x(
; NARROW: %[[LANE:.+]] = call i32 @__kiln_lane()
; NARROW: and i32 %[[LANE]], 15
; WIDE-LABEL: define i32 @x(
; WIDE-DAG: and i32 %{{.+}}, 224
; WIDE-DAG: and i32 %{{.+}}, 32
; WIDE-DAG: call i32 @__kiln_lane()
; WIDE: or disjoint
define i32 @x(ptr %launch, ptr %record, ptr %frame, i32 %at, i32 %lanes) {
  %v = call i32 @__kiln_value(i32 0)
  ret i32 %v
}

; The rows of a plane are divided off where there may be several planes.
; NARROW-LABEL: define i32 @y(
; NARROW-DAG: udiv i32 %{{.+}}, 16
; NARROW-DAG: urem i32
; NARROW-DAG: and i32 %{{.+}}, -2
; NARROW: or disjoint
; KNOWN-LABEL: define i32 @y(
; KNOWN-NOT: urem
; KNOWN: or disjoint
; WIDE-LABEL: define i32 @y(
; WIDE-NOT: __kiln_lane
; WIDE: %[[ROW:.+]] = udiv i32 %{{.+}}, 64
; WIDE: ret i32 %[[ROW]]
define i32 @y(ptr %launch, ptr %record, ptr %frame, i32 %at, i32 %lanes) {
  %v = call i32 @__kiln_value(i32 1)
  ret i32 %v
}

; NARROW-LABEL: define i32 @z(
; NARROW: udiv i32
; NARROW: udiv i32
; KNOWN-LABEL: define i32 @z(
; KNOWN-NEXT: ret i32 0
define i32 @z(ptr %launch, ptr %record, ptr %frame, i32 %at, i32 %lanes) {
  %v = call i32 @__kiln_value(i32 2)
  ret i32 %v
}

; NARROW-LABEL: define i32 @width(
; NARROW-NEXT: ret i32 16
; WIDE-LABEL: define i32 @width(
; WIDE-NEXT: ret i32 64
define i32 @width(ptr %launch, ptr %record, ptr %frame, i32 %at, i32 %lanes) {
  %v = call i32 @__kiln_value(i32 6)
  ret i32 %v
}
