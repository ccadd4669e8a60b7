; Pointers in several functions, one of a known distance, and one that nothing uses.
; RUN: kiln-opt --passes=batch-elements %s | FileCheck %s

; CHECK-NOT: @__kiln_element
declare ptr @__kiln_element(ptr, i64)

; CHECK-LABEL: define i32 @first_of_batch(
; CHECK-NEXT: [[FIRST:%.*]] = getelementptr i8, ptr %in, i64 0
; CHECK-NEXT: %value = load i32, ptr [[FIRST]]
define i32 @first_of_batch(ptr %in) {
  %x = call ptr @__kiln_element(ptr %in, i64 0)
  %value = load i32, ptr %x
  ret i32 %value
}

; CHECK-LABEL: define void @two_arrays(
; CHECK-DAG: [[FROM:%.*]] = getelementptr i8, ptr %in, i64 %batch
; CHECK-DAG: [[TO:%.*]] = getelementptr i8, ptr %out, i64 %batch
; CHECK: %value = load i32, ptr [[FROM]]
; CHECK-NEXT: store i32 %value, ptr [[TO]]
define void @two_arrays(ptr %in, ptr %out, i64 %batch) {
  %x = call ptr @__kiln_element(ptr %in, i64 %batch)
  %y = call ptr @__kiln_element(ptr %out, i64 %batch)
  %unused = call ptr @__kiln_element(ptr %in, i64 8)
  %value = load i32, ptr %x
  store i32 %value, ptr %y
  ret void
}
