; One simdgroup that reads its memory from beginning to end needs no sorting.
; RUN: kiln-opt --passes=address-order %s | FileCheck %s

; CHECK-LABEL: @sums(
; CHECK-NOT: asm sideeffect
; CHECK-NOT: kiln.address_order
; CHECK: ret void
define void @sums(ptr noalias %data, ptr noalias %out) {
  %load0.0 = load <8 x float>, ptr %data, align 4
  %address0.1 = getelementptr i8, ptr %data, i64 32
  %load0.1 = load <8 x float>, ptr %address0.1, align 4
  %sum0.1 = fadd <8 x float> %load0.0, %load0.1
  %address0.2 = getelementptr i8, ptr %data, i64 64
  %load0.2 = load <8 x float>, ptr %address0.2, align 4
  %sum0.2 = fadd <8 x float> %sum0.1, %load0.2
  %address0.3 = getelementptr i8, ptr %data, i64 96
  %load0.3 = load <8 x float>, ptr %address0.3, align 4
  %sum0.3 = fadd <8 x float> %sum0.2, %load0.3
  %address0.4 = getelementptr i8, ptr %data, i64 128
  %load0.4 = load <8 x float>, ptr %address0.4, align 4
  %sum0.4 = fadd <8 x float> %sum0.3, %load0.4
  %address0.5 = getelementptr i8, ptr %data, i64 160
  %load0.5 = load <8 x float>, ptr %address0.5, align 4
  %sum0.5 = fadd <8 x float> %sum0.4, %load0.5
  %address0.6 = getelementptr i8, ptr %data, i64 192
  %load0.6 = load <8 x float>, ptr %address0.6, align 4
  %sum0.6 = fadd <8 x float> %sum0.5, %load0.6
  %address0.7 = getelementptr i8, ptr %data, i64 224
  %load0.7 = load <8 x float>, ptr %address0.7, align 4
  %sum0.7 = fadd <8 x float> %sum0.6, %load0.7
  %address0.8 = getelementptr i8, ptr %data, i64 256
  %load0.8 = load <8 x float>, ptr %address0.8, align 4
  %sum0.8 = fadd <8 x float> %sum0.7, %load0.8
  %address0.9 = getelementptr i8, ptr %data, i64 288
  %load0.9 = load <8 x float>, ptr %address0.9, align 4
  %sum0.9 = fadd <8 x float> %sum0.8, %load0.9
  %address0.10 = getelementptr i8, ptr %data, i64 320
  %load0.10 = load <8 x float>, ptr %address0.10, align 4
  %sum0.10 = fadd <8 x float> %sum0.9, %load0.10
  %address0.11 = getelementptr i8, ptr %data, i64 352
  %load0.11 = load <8 x float>, ptr %address0.11, align 4
  %sum0.11 = fadd <8 x float> %sum0.10, %load0.11
  %address0.12 = getelementptr i8, ptr %data, i64 384
  %load0.12 = load <8 x float>, ptr %address0.12, align 4
  %sum0.12 = fadd <8 x float> %sum0.11, %load0.12
  %address0.13 = getelementptr i8, ptr %data, i64 416
  %load0.13 = load <8 x float>, ptr %address0.13, align 4
  %sum0.13 = fadd <8 x float> %sum0.12, %load0.13
  %address0.14 = getelementptr i8, ptr %data, i64 448
  %load0.14 = load <8 x float>, ptr %address0.14, align 4
  %sum0.14 = fadd <8 x float> %sum0.13, %load0.14
  %address0.15 = getelementptr i8, ptr %data, i64 480
  %load0.15 = load <8 x float>, ptr %address0.15, align 4
  %sum0.15 = fadd <8 x float> %sum0.14, %load0.15
  store <8 x float> %sum0.15, ptr %out, align 4
  ret void
}
