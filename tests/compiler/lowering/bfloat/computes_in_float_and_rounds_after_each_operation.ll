; Arithmetic of bfloats is arithmetic of floats, which are the same bits shifted left by 16, and each result is rounded
; to a bfloat before the next operation uses it. No instruction on bfloats that a target may lack or round otherwise
; remains.
; RUN: kiln-opt --passes=bfloat %s | FileCheck %s

; CHECK-LABEL: define bfloat @two_operations(
; CHECK-NOT: {{fadd|fmul}} bfloat
; CHECK: [[BITS:%.*]] = bitcast bfloat %x to i16
; CHECK: [[WORD:%.*]] = zext i16 [[BITS]] to i32
; CHECK: [[HIGH:%.*]] = shl i32 [[WORD]], 16
; CHECK: [[WIDE:%.*]] = bitcast i32 [[HIGH]] to float
; CHECK: fmul float [[WIDE]],
; CHECK: [[PRODUCT:%.*]] = bitcast i16 {{.*}} to bfloat
; CHECK: bitcast bfloat [[PRODUCT]] to i16
; CHECK: fadd float
; CHECK: [[SUM:%.*]] = bitcast i16 {{.*}} to bfloat
; CHECK-NOT: {{fadd|fmul}} bfloat
; CHECK: ret bfloat [[SUM]]
define bfloat @two_operations(bfloat %x, bfloat %y) {
  %p = fmul bfloat %x, %y
  %s = fadd bfloat %p, %y
  ret bfloat %s
}

; CHECK-LABEL: define i1 @comparison(
; CHECK-NOT: fcmp olt bfloat
; CHECK: fcmp olt float
define i1 @comparison(bfloat %x, bfloat %y) {
  %c = fcmp olt bfloat %x, %y
  ret i1 %c
}

; CHECK-LABEL: define <2 x bfloat> @components(
; CHECK-NOT: fsub <2 x bfloat>
; CHECK: fsub <2 x float>
define <2 x bfloat> @components(<2 x bfloat> %x, <2 x bfloat> %y) {
  %d = fsub <2 x bfloat> %x, %y
  ret <2 x bfloat> %d
}
