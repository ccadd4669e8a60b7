; A shape has 16 elements at least, so a load at a constant index below that needs no guard. From 16 on it does, as does
; a load that begins below the end and reaches past it, one at an index that is not constant, and one before the start.
; RUN: kiln-opt --passes=bounds-guards --parameters=shape:4 %s | FileCheck %s

; CHECK-LABEL: define i32 @last(
; CHECK-NEXT: %a = getelementptr i32, ptr %shape, i64 15
; CHECK-NEXT: %n = load i32, ptr %a
; CHECK-NEXT: ret i32 %n
define i32 @last(ptr %shape, i64 %first, i64 %bytes) {
  %a = getelementptr i32, ptr %shape, i64 15
  %n = load i32, ptr %a
  ret i32 %n
}

; CHECK-LABEL: define i32 @past_the_last(
; CHECK: [[SOURCE:%.*]] = select i1 {{.*}}, ptr %a, ptr @__kiln_zeros
; CHECK: %n = load i32, ptr [[SOURCE]]
define i32 @past_the_last(ptr %shape, i64 %first, i64 %bytes) {
  %a = getelementptr i32, ptr %shape, i64 16
  %n = load i32, ptr %a
  ret i32 %n
}

; CHECK-LABEL: define i64 @across_the_end(
; CHECK: select i1 {{.*}}, ptr %a, ptr @__kiln_zeros
define i64 @across_the_end(ptr %shape, i64 %first, i64 %bytes) {
  %a = getelementptr i32, ptr %shape, i64 15
  %n = load i64, ptr %a, align 4
  ret i64 %n
}

; CHECK-LABEL: define i32 @before(
; CHECK: select i1 {{.*}}, ptr %a, ptr @__kiln_zeros
define i32 @before(ptr %shape, i64 %first, i64 %bytes) {
  %a = getelementptr i32, ptr %shape, i64 -1
  %n = load i32, ptr %a
  ret i32 %n
}

; CHECK-LABEL: define i32 @anywhere(
; CHECK: select i1 {{.*}}, ptr %a, ptr @__kiln_zeros
define i32 @anywhere(ptr %shape, i64 %first, i64 %bytes, i64 %i) {
  %a = getelementptr i32, ptr %shape, i64 %i
  %n = load i32, ptr %a
  ret i32 %n
}
