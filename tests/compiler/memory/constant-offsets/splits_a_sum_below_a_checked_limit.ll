; A check that dominates the access tells that the sum does not wrap: x < 2^32 - 32, that is, x < -32, is just enough
; for x + 32. A limit one larger lets through an x that wraps, and a check whose other edge leads to the access tells
; nothing.
; RUN: kiln-opt --passes=constant-offsets %s | FileCheck %s

; CHECK-LABEL: @just_enough(
; CHECK: %[[INDEX:.+]] = zext i32 %x to i64
; CHECK: %[[BASE:.+]] = getelementptr float, ptr %data, i64 %[[INDEX]]
; CHECK: %[[ADDRESS:.+]] = getelementptr i8, ptr %[[BASE]], i64 128
; CHECK: load float, ptr %[[ADDRESS]]
define float @just_enough(ptr %data, i32 %x) {
  %is_small = icmp ult i32 %x, -32
  br i1 %is_small, label %small, label %end
small:
  %sum = add i32 %x, 32
  %index = zext i32 %sum to i64
  %address = getelementptr float, ptr %data, i64 %index
  %value = load float, ptr %address
  ret float %value
end:
  ret float 0.0
}

; CHECK-LABEL: @one_too_large(
; CHECK: %address = getelementptr float, ptr %data, i64 %index
; CHECK-NEXT: load float, ptr %address
define float @one_too_large(ptr %data, i32 %x) {
  %is_small = icmp ult i32 %x, -31
  br i1 %is_small, label %small, label %end
small:
  %sum = add i32 %x, 32
  %index = zext i32 %sum to i64
  %address = getelementptr float, ptr %data, i64 %index
  %value = load float, ptr %address
  ret float %value
end:
  ret float 0.0
}

; CHECK-LABEL: @on_the_other_edge(
; CHECK: %address = getelementptr float, ptr %data, i64 %index
; CHECK-NEXT: load float, ptr %address
define float @on_the_other_edge(ptr %data, i32 %x) {
  %is_small = icmp ult i32 %x, -32
  br i1 %is_small, label %end, label %large
large:
  %sum = add i32 %x, 32
  %index = zext i32 %sum to i64
  %address = getelementptr float, ptr %data, i64 %index
  %value = load float, ptr %address
  ret float %value
end:
  ret float 0.0
}

; A check that is one part of a conjunction holds where the conjunction does.
; CHECK-LABEL: @in_a_conjunction(
; CHECK: getelementptr i8, ptr {{.+}}, i64 128
define float @in_a_conjunction(ptr %data, i32 %x, i1 %other) {
  %is_small = icmp ult i32 %x, 1024
  %both = select i1 %is_small, i1 %other, i1 false
  br i1 %both, label %small, label %end
small:
  %sum = add i32 %x, 32
  %index = zext i32 %sum to i64
  %address = getelementptr float, ptr %data, i64 %index
  %value = load float, ptr %address
  ret float %value
end:
  ret float 0.0
}
