; A row of threads has one record, whose position the loop over the row counts: the loads are not invariant, and two reads
; stay two. A value whose number is computed is read at that index.
; RUN: kiln-opt --passes=thread-values %s | FileCheck %s

declare i32 @__kiln_value(i32)

; CHECK-LABEL: define i32 @twice(
; CHECK-COUNT-2: load i32, ptr %{{[0-9]+}}, align 4{{$}}
; CHECK: %[[AT:.+]] = getelementptr inbounds i32, ptr %record, i32 %which
; CHECK: load i32, ptr %[[AT]], align 4{{$}}
; CHECK-NOT: call
; CHECK: ret
define i32 @twice(i32 %which, ptr %record) {
  %a = call i32 @__kiln_value(i32 0)
  %b = call i32 @__kiln_value(i32 0)
  %c = call i32 @__kiln_value(i32 %which)
  %some = add i32 %a, %b
  %sum = add i32 %some, %c
  ret i32 %sum
}
