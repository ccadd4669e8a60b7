; After the expansion of arithmetic a bfloat lies only between the integers from which it was made and those into which
; it is widened. Both conversions go; the one of a pair of bfloats to one integer stays a conversion, of integers.
; RUN: kiln-opt --passes=bfloat,bfloat-conversions %s | FileCheck %s

; CHECK-LABEL: define void @negated_product(
; CHECK-NOT: bfloat
; CHECK: load i16, ptr %p
; CHECK: fmul float
; CHECK: xor i16 {{.*}}, -32768
; CHECK: store i16 {{.*}}, ptr %p
; CHECK-NOT: bfloat
; CHECK: ret void
define void @negated_product(ptr %p) {
  %x = load bfloat, ptr %p
  %y = fmul bfloat %x, %x
  %z = fneg bfloat %y
  store bfloat %z, ptr %p
  ret void
}

; CHECK-LABEL: define i32 @pair(
; CHECK-NOT: bfloat
; CHECK: [[PAIR:%.*]] = load <2 x i16>, ptr %p
; CHECK: [[BITS:%.*]] = bitcast <2 x i16> [[PAIR]] to i32
; CHECK: ret i32 [[BITS]]
define i32 @pair(ptr %p) {
  %v = load <2 x bfloat>, ptr %p
  %bits = bitcast <2 x bfloat> %v to i32
  ret i32 %bits
}
