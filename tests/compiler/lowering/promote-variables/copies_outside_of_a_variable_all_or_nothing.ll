; A copy or fill that reaches past the end of a variable does nothing; one that reads past the end of its source gives
; zeros for all of it. The border is the length that just fits.
; RUN: kiln-opt --passes=promote-variables %s | FileCheck %s

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; CHECK-LABEL: define i32 @fits(
; CHECK: ret i32 0
define i32 @fits(i32 %x) {
  %v = alloca [2 x i32]
  store i32 %x, ptr %v
  call void @llvm.memset.p0.i64(ptr %v, i8 0, i64 8, i1 false)
  %r = load i32, ptr %v
  ret i32 %r
}

; CHECK-LABEL: define i32 @too_long(
; CHECK: ret i32 %x
define i32 @too_long(i32 %x) {
  %v = alloca [2 x i32]
  store i32 %x, ptr %v
  call void @llvm.memset.p0.i64(ptr %v, i8 0, i64 9, i1 false)
  %r = load i32, ptr %v
  ret i32 %r
}

; CHECK-LABEL: define i32 @from_outside(
; CHECK: ret i32 0
define i32 @from_outside(i32 %x) {
  %v = alloca [2 x i32]
  %w = alloca [4 x i32]
  store i32 %x, ptr %v
  call void @llvm.memcpy.p0.p0.i64(ptr %w, ptr %v, i64 12, i1 false)
  %r = load i32, ptr %w
  ret i32 %r
}
