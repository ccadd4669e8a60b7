; Four simdgroups each add up four registers that lie 128 bytes apart, one simdgroup after the other. The loads are
; issued as the memory lies, each kept in its place by an empty inline assembly and added to its own simdgroup's sum
; at once.
; RUN: kiln-opt --passes=address-order %s | FileCheck %s

; CHECK-LABEL: @sums(
; CHECK: %load0.0 = load
; CHECK: call void asm sideeffect "", "~{memory}"()
; CHECK-NEXT: getelementptr i8, ptr %data, i64 32
; CHECK-NEXT: %load1.0 = load {{.*}}, !kiln.address_order
; CHECK: i64 64{{$}}
; CHECK-NEXT: %load2.0 = load
; CHECK: i64 96{{$}}
; CHECK-NEXT: %load3.0 = load
; CHECK: i64 128{{$}}
; CHECK-NEXT: %load0.1 = load
; CHECK-NEXT: %sum0.1 = fadd
; CHECK: i64 160{{$}}
; CHECK-NEXT: %load1.1 = load
; CHECK-NEXT: %sum1.1 = fadd
; CHECK: %load3.3 = load
; CHECK-NEXT: %sum3.3 = fadd
; CHECK-NOT: = load
; CHECK: store <8 x float> %sum0.3, ptr %out
define void @sums(ptr noalias %data, ptr noalias %out) {
  %load0.0 = load <8 x float>, ptr %data, align 4
  %address0.1 = getelementptr i8, ptr %data, i64 128
  %load0.1 = load <8 x float>, ptr %address0.1, align 4
  %sum0.1 = fadd <8 x float> %load0.0, %load0.1
  %address0.2 = getelementptr i8, ptr %data, i64 256
  %load0.2 = load <8 x float>, ptr %address0.2, align 4
  %sum0.2 = fadd <8 x float> %sum0.1, %load0.2
  %address0.3 = getelementptr i8, ptr %data, i64 384
  %load0.3 = load <8 x float>, ptr %address0.3, align 4
  %sum0.3 = fadd <8 x float> %sum0.2, %load0.3
  %address1.0 = getelementptr i8, ptr %data, i64 32
  %load1.0 = load <8 x float>, ptr %address1.0, align 4
  %address1.1 = getelementptr i8, ptr %data, i64 160
  %load1.1 = load <8 x float>, ptr %address1.1, align 4
  %sum1.1 = fadd <8 x float> %load1.0, %load1.1
  %address1.2 = getelementptr i8, ptr %data, i64 288
  %load1.2 = load <8 x float>, ptr %address1.2, align 4
  %sum1.2 = fadd <8 x float> %sum1.1, %load1.2
  %address1.3 = getelementptr i8, ptr %data, i64 416
  %load1.3 = load <8 x float>, ptr %address1.3, align 4
  %sum1.3 = fadd <8 x float> %sum1.2, %load1.3
  %address2.0 = getelementptr i8, ptr %data, i64 64
  %load2.0 = load <8 x float>, ptr %address2.0, align 4
  %address2.1 = getelementptr i8, ptr %data, i64 192
  %load2.1 = load <8 x float>, ptr %address2.1, align 4
  %sum2.1 = fadd <8 x float> %load2.0, %load2.1
  %address2.2 = getelementptr i8, ptr %data, i64 320
  %load2.2 = load <8 x float>, ptr %address2.2, align 4
  %sum2.2 = fadd <8 x float> %sum2.1, %load2.2
  %address2.3 = getelementptr i8, ptr %data, i64 448
  %load2.3 = load <8 x float>, ptr %address2.3, align 4
  %sum2.3 = fadd <8 x float> %sum2.2, %load2.3
  %address3.0 = getelementptr i8, ptr %data, i64 96
  %load3.0 = load <8 x float>, ptr %address3.0, align 4
  %address3.1 = getelementptr i8, ptr %data, i64 224
  %load3.1 = load <8 x float>, ptr %address3.1, align 4
  %sum3.1 = fadd <8 x float> %load3.0, %load3.1
  %address3.2 = getelementptr i8, ptr %data, i64 352
  %load3.2 = load <8 x float>, ptr %address3.2, align 4
  %sum3.2 = fadd <8 x float> %sum3.1, %load3.2
  %address3.3 = getelementptr i8, ptr %data, i64 480
  %load3.3 = load <8 x float>, ptr %address3.3, align 4
  %sum3.3 = fadd <8 x float> %sum3.2, %load3.3
  store <8 x float> %sum0.3, ptr %out, align 4
  %out1 = getelementptr i8, ptr %out, i64 32
  store <8 x float> %sum1.3, ptr %out1, align 4
  %out2 = getelementptr i8, ptr %out, i64 64
  store <8 x float> %sum2.3, ptr %out2, align 4
  %out3 = getelementptr i8, ptr %out, i64 96
  store <8 x float> %sum3.3, ptr %out3, align 4
  ret void
}
