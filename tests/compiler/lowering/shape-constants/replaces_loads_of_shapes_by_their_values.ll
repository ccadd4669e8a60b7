; A shape that is known when the kernel is compiled is a number in its code. Beyond the array's dimensions there are
; zeros up to the padded number of them.
; RUN: kiln-opt --passes=shape-constants --parameters=in:4,shape:4 --values=3,5 %s | FileCheck %s
; RUN: kiln-opt --passes=shape-constants --parameters=in:8,shape:8 --values=-7 --function=wide %s | FileCheck %s --check-prefix=WIDE

; CHECK-LABEL: define i32 @body(
; CHECK-NOT: load
; CHECK: %sum = add i32 3, 5
; CHECK-NEXT: %all = add i32 %sum, 0
; CHECK-NEXT: ret i32 %all
define i32 @body(ptr %x, i64 %x.first, i64 %x.end, ptr %shape, i64 %shape.first, i64 %shape.end, ptr %thread) {
  %a = load i32, ptr %shape
  %at.1 = getelementptr i8, ptr %shape, i64 4
  %b = load i32, ptr %at.1
  %at.2 = getelementptr i8, ptr %shape, i64 8
  %c = load i32, ptr %at.2
  %sum = add i32 %a, %b
  %all = add i32 %sum, %c
  ret i32 %all
}

; Elements of eight bytes, with a sign.
; WIDE-LABEL: define i64 @wide(
; WIDE-NEXT: ret i64 -7
define i64 @wide(ptr %x, i64 %x.first, i64 %x.end, ptr %shape, i64 %shape.first, i64 %shape.end, ptr %thread) {
  %a = load i64, ptr %shape
  ret i64 %a
}
