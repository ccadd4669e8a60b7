; A grid has less than 2^31 threads along an axis. In rows of known threads, the size of a threadgroup is a number.
; RUN: kiln-opt --passes=positions --row-threads=16 %s | FileCheck %s

declare i32 @__kiln_value(i32)

; CHECK-LABEL: define i32 @x(
; CHECK: mul nuw i32 %{{.+}}, 16
; CHECK: add nuw i32
define i32 @x(ptr %launch, ptr %record, i32 %z, i32 %row, i32 %at, i32 %lanes) {
  %group = call i32 @__kiln_value(i32 3)
  %threads = call i32 @__kiln_value(i32 9)
  %first = mul i32 %group, %threads
  %in_group = call i32 @__kiln_value(i32 0)
  %position = add i32 %first, %in_group
  ret i32 %position
}

; Another axis's size, and another sum.
; CHECK-LABEL: define i32 @others(
; CHECK-NOT: nuw
; CHECK: ret i32
define i32 @others(ptr %launch, ptr %record, i32 %z, i32 %row, i32 %at, i32 %lanes) {
  %group = call i32 @__kiln_value(i32 3)
  %threads = call i32 @__kiln_value(i32 10)
  %first = mul i32 %group, %threads
  %in_group = call i32 @__kiln_value(i32 0)
  %position = add i32 %first, %in_group
  %sum = add i32 %in_group, %position
  ret i32 %sum
}
