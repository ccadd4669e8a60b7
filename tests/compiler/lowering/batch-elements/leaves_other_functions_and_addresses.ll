; Nothing but calls of the pseudo-intrinsic changes, whatever other names look like.
; RUN: kiln-opt --passes=batch-elements %s | FileCheck %s

declare ptr @__kiln_element_of(ptr, i64)
declare ptr @element(ptr, i64)

; CHECK-LABEL: define i32 @load(
; CHECK-NEXT: %x = call ptr @__kiln_element_of(ptr %in, i64 %batch)
; CHECK-NEXT: %y = call ptr @element(ptr %x, i64 %batch)
; CHECK-NEXT: %z = getelementptr i8, ptr %y, i64 %batch
; CHECK-NEXT: %value = load i32, ptr %z
; CHECK-NEXT: ret i32 %value
define i32 @load(ptr %in, i64 %batch) {
  %x = call ptr @__kiln_element_of(ptr %in, i64 %batch)
  %y = call ptr @element(ptr %x, i64 %batch)
  %z = getelementptr i8, ptr %y, i64 %batch
  %value = load i32, ptr %z
  ret i32 %value
}
