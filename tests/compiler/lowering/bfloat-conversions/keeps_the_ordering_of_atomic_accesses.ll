; Atomic loads and stores of bfloats stay atomic as those of their bits.
; RUN: kiln-opt --passes=bfloat-conversions %s | FileCheck %s

; CHECK-LABEL: define void @f(
; CHECK: load atomic i16, ptr %p monotonic, align 2
; CHECK: store atomic i16 {{%.*}}, ptr %q release, align 2
define void @f(ptr %p, ptr %q) {
  %x = load atomic bfloat, ptr %p monotonic, align 2
  store atomic bfloat %x, ptr %q release, align 2
  ret void
}
