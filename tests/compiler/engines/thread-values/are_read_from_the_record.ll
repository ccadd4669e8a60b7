; The numbers of the values are indices into the record, which the last parameter points to.
; RUN: kiln-opt --passes=thread-values %s | FileCheck %s

declare i32 @__kiln_value(i32)

; CHECK-LABEL: define i32 @position(
; CHECK-NEXT: %[[X:.+]] = getelementptr inbounds i32, ptr %record, i32 0
; CHECK-NEXT: %[[POSITION:.+]] = load i32, ptr %[[X]]
; CHECK-NEXT: %[[LAST:.+]] = getelementptr inbounds i32, ptr %record, i32 18
; CHECK-NEXT: %[[INDEX:.+]] = load i32, ptr %[[LAST]]
; CHECK-NEXT: add i32 %[[POSITION]], %[[INDEX]]
define i32 @position(ptr %in, ptr %record) {
  %x = call i32 @__kiln_value(i32 0)
  %index = call i32 @__kiln_value(i32 18)
  %sum = add i32 %x, %index
  ret i32 %sum
}
