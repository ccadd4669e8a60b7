; The pointer to an array of a batch is its distance from the first.
; RUN: kiln-opt --passes=batch-elements %s | FileCheck %s

; CHECK-LABEL: define i32 @load(
; CHECK-NEXT: [[ELEMENT:%.*]] = getelementptr i8, ptr %in, i64 %batch
; CHECK-NEXT: load i32, ptr [[ELEMENT]]
; CHECK-NOT: __kiln_element
define i32 @load(ptr %in, i64 %batch) {
  %x = call ptr @__kiln_element(ptr %in, i64 %batch)
  %value = load i32, ptr %x
  ret i32 %value
}

declare ptr @__kiln_element(ptr, i64)
