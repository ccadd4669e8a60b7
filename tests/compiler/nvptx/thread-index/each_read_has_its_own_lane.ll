; Reads in several blocks stay where they are, and one that nothing uses leaves calls without side effects.
; RUN: kiln-opt --passes=thread-index %s | FileCheck %s
; RUN: kiln-opt --passes=thread-index,adce %s | FileCheck %s --check-prefix=ADCE

declare i32 @__kiln_value(i32)

; CHECK-LABEL: define i32 @two(
; CHECK-COUNT-3: call range(i32 0, 32) i32 @__kiln_lane()
; CHECK-NOT: @__kiln_lane()
; CHECK-NOT: @__kiln_value(i32 18)
; CHECK: ret
; ADCE-LABEL: define i32 @two(
; ADCE-COUNT-2: call range(i32 0, 32) i32 @__kiln_lane()
; ADCE-NOT: @__kiln_lane()
; ADCE: ret
define i32 @two(i1 %condition) {
entry:
  %unused = call i32 @__kiln_value(i32 18)
  br i1 %condition, label %then, label %else
then:
  %a = call i32 @__kiln_value(i32 18)
  ret i32 %a
else:
  %b = call i32 @__kiln_value(i32 18)
  ret i32 %b
}
