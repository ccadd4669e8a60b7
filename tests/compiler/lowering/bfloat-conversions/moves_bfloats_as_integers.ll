; A bfloat that is loaded, chosen and stored is moved as 16 bits, with the alignment and volatility that the accesses
; had, and no conversions between the two remain.
; RUN: kiln-opt --passes=bfloat-conversions %s | FileCheck %s

; CHECK-LABEL: define void @choose(
; CHECK-NOT: bfloat
; CHECK: [[X:%.*]] = load i16, ptr %p, align 2
; CHECK: [[Y:%.*]] = load volatile i16, ptr %q, align 1
; CHECK: [[Z:%.*]] = select i1 %c, i16 [[X]], i16 [[Y]]
; CHECK: store i16 [[Z]], ptr %out, align 2
; CHECK-NOT: bfloat
; CHECK: ret void
define void @choose(ptr %p, ptr %q, ptr %out, i1 %c) {
  %x = load bfloat, ptr %p, align 2
  %y = load volatile bfloat, ptr %q, align 1
  %z = select i1 %c, bfloat %x, bfloat %y
  store bfloat %z, ptr %out, align 2
  ret void
}

; CHECK-LABEL: define void @components(
; CHECK-NOT: bfloat
; CHECK: [[V:%.*]] = load <2 x i16>, ptr %p, align 4
; CHECK: [[X:%.*]] = extractelement <2 x i16> [[V]], i64 1
; CHECK: [[W:%.*]] = insertelement <2 x i16> [[V]], i16 [[X]], i64 0
; CHECK: shufflevector <2 x i16> [[W]], <2 x i16> {{.*}}, <2 x i32> <i32 1, i32 0>
; CHECK-NOT: bfloat
; CHECK: ret void
define void @components(ptr %p, ptr %out) {
  %v = load <2 x bfloat>, ptr %p, align 4
  %x = extractelement <2 x bfloat> %v, i64 1
  %w = insertelement <2 x bfloat> %v, bfloat %x, i64 0
  %s = shufflevector <2 x bfloat> %w, <2 x bfloat> poison, <2 x i32> <i32 1, i32 0>
  store <2 x bfloat> %s, ptr %out, align 4
  ret void
}
