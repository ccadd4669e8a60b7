; In address order all simdgroups' sums are in progress. Up to three live registers for each of the processor's 16
; are accepted: with AVX2 four sums of eight registers with a load and the next sum, 48 in all, but not five. AVX-512
; has twice as many registers of twice the size.
; RUN: kiln-opt --passes=address-order %s | FileCheck %s --check-prefixes=CHECK,AVX2
; RUN: kiln-opt --passes=address-order --cpu=x86-64-v4 %s | FileCheck %s --check-prefixes=CHECK,AVX512

; CHECK-LABEL: @four_sums(
; CHECK: %load0.0 = load
; CHECK-NOT: %load0.1 = load
; CHECK: %load1.0 = load {{.*}}, !kiln.address_order
; CHECK: %load0.1 = load
define void @four_sums(ptr noalias %data, ptr noalias %out) {
  %load0.0 = load <64 x float>, ptr %data, align 4
  %address0.1 = getelementptr i8, ptr %data, i64 1024
  %load0.1 = load <64 x float>, ptr %address0.1, align 4
  %sum0.1 = fadd <64 x float> %load0.0, %load0.1
  %address0.2 = getelementptr i8, ptr %data, i64 2048
  %load0.2 = load <64 x float>, ptr %address0.2, align 4
  %sum0.2 = fadd <64 x float> %sum0.1, %load0.2
  %address0.3 = getelementptr i8, ptr %data, i64 3072
  %load0.3 = load <64 x float>, ptr %address0.3, align 4
  %sum0.3 = fadd <64 x float> %sum0.2, %load0.3
  %address1.0 = getelementptr i8, ptr %data, i64 256
  %load1.0 = load <64 x float>, ptr %address1.0, align 4
  %address1.1 = getelementptr i8, ptr %data, i64 1280
  %load1.1 = load <64 x float>, ptr %address1.1, align 4
  %sum1.1 = fadd <64 x float> %load1.0, %load1.1
  %address1.2 = getelementptr i8, ptr %data, i64 2304
  %load1.2 = load <64 x float>, ptr %address1.2, align 4
  %sum1.2 = fadd <64 x float> %sum1.1, %load1.2
  %address1.3 = getelementptr i8, ptr %data, i64 3328
  %load1.3 = load <64 x float>, ptr %address1.3, align 4
  %sum1.3 = fadd <64 x float> %sum1.2, %load1.3
  %address2.0 = getelementptr i8, ptr %data, i64 512
  %load2.0 = load <64 x float>, ptr %address2.0, align 4
  %address2.1 = getelementptr i8, ptr %data, i64 1536
  %load2.1 = load <64 x float>, ptr %address2.1, align 4
  %sum2.1 = fadd <64 x float> %load2.0, %load2.1
  %address2.2 = getelementptr i8, ptr %data, i64 2560
  %load2.2 = load <64 x float>, ptr %address2.2, align 4
  %sum2.2 = fadd <64 x float> %sum2.1, %load2.2
  %address2.3 = getelementptr i8, ptr %data, i64 3584
  %load2.3 = load <64 x float>, ptr %address2.3, align 4
  %sum2.3 = fadd <64 x float> %sum2.2, %load2.3
  %address3.0 = getelementptr i8, ptr %data, i64 768
  %load3.0 = load <64 x float>, ptr %address3.0, align 4
  %address3.1 = getelementptr i8, ptr %data, i64 1792
  %load3.1 = load <64 x float>, ptr %address3.1, align 4
  %sum3.1 = fadd <64 x float> %load3.0, %load3.1
  %address3.2 = getelementptr i8, ptr %data, i64 2816
  %load3.2 = load <64 x float>, ptr %address3.2, align 4
  %sum3.2 = fadd <64 x float> %sum3.1, %load3.2
  %address3.3 = getelementptr i8, ptr %data, i64 3840
  %load3.3 = load <64 x float>, ptr %address3.3, align 4
  %sum3.3 = fadd <64 x float> %sum3.2, %load3.3
  store <64 x float> %sum0.3, ptr %out, align 4
  %out1 = getelementptr i8, ptr %out, i64 256
  store <64 x float> %sum1.3, ptr %out1, align 4
  %out2 = getelementptr i8, ptr %out, i64 512
  store <64 x float> %sum2.3, ptr %out2, align 4
  %out3 = getelementptr i8, ptr %out, i64 768
  store <64 x float> %sum3.3, ptr %out3, align 4
  ret void
}

; CHECK-LABEL: @five_sums(
; AVX2-NOT: asm sideeffect
; AVX2: %load0.0 = load
; AVX2: %load0.1 = load
; AVX2: %load1.0 = load
; AVX2-NOT: kiln.address_order
; AVX512: %load0.0 = load
; AVX512-NOT: %load0.1 = load
; AVX512: %load1.0 = load {{.*}}, !kiln.address_order
define void @five_sums(ptr noalias %data, ptr noalias %out) {
  %load0.0 = load <64 x float>, ptr %data, align 4
  %address0.1 = getelementptr i8, ptr %data, i64 1280
  %load0.1 = load <64 x float>, ptr %address0.1, align 4
  %sum0.1 = fadd <64 x float> %load0.0, %load0.1
  %address0.2 = getelementptr i8, ptr %data, i64 2560
  %load0.2 = load <64 x float>, ptr %address0.2, align 4
  %sum0.2 = fadd <64 x float> %sum0.1, %load0.2
  %address0.3 = getelementptr i8, ptr %data, i64 3840
  %load0.3 = load <64 x float>, ptr %address0.3, align 4
  %sum0.3 = fadd <64 x float> %sum0.2, %load0.3
  %address1.0 = getelementptr i8, ptr %data, i64 256
  %load1.0 = load <64 x float>, ptr %address1.0, align 4
  %address1.1 = getelementptr i8, ptr %data, i64 1536
  %load1.1 = load <64 x float>, ptr %address1.1, align 4
  %sum1.1 = fadd <64 x float> %load1.0, %load1.1
  %address1.2 = getelementptr i8, ptr %data, i64 2816
  %load1.2 = load <64 x float>, ptr %address1.2, align 4
  %sum1.2 = fadd <64 x float> %sum1.1, %load1.2
  %address1.3 = getelementptr i8, ptr %data, i64 4096
  %load1.3 = load <64 x float>, ptr %address1.3, align 4
  %sum1.3 = fadd <64 x float> %sum1.2, %load1.3
  %address2.0 = getelementptr i8, ptr %data, i64 512
  %load2.0 = load <64 x float>, ptr %address2.0, align 4
  %address2.1 = getelementptr i8, ptr %data, i64 1792
  %load2.1 = load <64 x float>, ptr %address2.1, align 4
  %sum2.1 = fadd <64 x float> %load2.0, %load2.1
  %address2.2 = getelementptr i8, ptr %data, i64 3072
  %load2.2 = load <64 x float>, ptr %address2.2, align 4
  %sum2.2 = fadd <64 x float> %sum2.1, %load2.2
  %address2.3 = getelementptr i8, ptr %data, i64 4352
  %load2.3 = load <64 x float>, ptr %address2.3, align 4
  %sum2.3 = fadd <64 x float> %sum2.2, %load2.3
  %address3.0 = getelementptr i8, ptr %data, i64 768
  %load3.0 = load <64 x float>, ptr %address3.0, align 4
  %address3.1 = getelementptr i8, ptr %data, i64 2048
  %load3.1 = load <64 x float>, ptr %address3.1, align 4
  %sum3.1 = fadd <64 x float> %load3.0, %load3.1
  %address3.2 = getelementptr i8, ptr %data, i64 3328
  %load3.2 = load <64 x float>, ptr %address3.2, align 4
  %sum3.2 = fadd <64 x float> %sum3.1, %load3.2
  %address3.3 = getelementptr i8, ptr %data, i64 4608
  %load3.3 = load <64 x float>, ptr %address3.3, align 4
  %sum3.3 = fadd <64 x float> %sum3.2, %load3.3
  %address4.0 = getelementptr i8, ptr %data, i64 1024
  %load4.0 = load <64 x float>, ptr %address4.0, align 4
  %address4.1 = getelementptr i8, ptr %data, i64 2304
  %load4.1 = load <64 x float>, ptr %address4.1, align 4
  %sum4.1 = fadd <64 x float> %load4.0, %load4.1
  %address4.2 = getelementptr i8, ptr %data, i64 3584
  %load4.2 = load <64 x float>, ptr %address4.2, align 4
  %sum4.2 = fadd <64 x float> %sum4.1, %load4.2
  %address4.3 = getelementptr i8, ptr %data, i64 4864
  %load4.3 = load <64 x float>, ptr %address4.3, align 4
  %sum4.3 = fadd <64 x float> %sum4.2, %load4.3
  store <64 x float> %sum0.3, ptr %out, align 4
  %out1 = getelementptr i8, ptr %out, i64 256
  store <64 x float> %sum1.3, ptr %out1, align 4
  %out2 = getelementptr i8, ptr %out, i64 512
  store <64 x float> %sum2.3, ptr %out2, align 4
  %out3 = getelementptr i8, ptr %out, i64 768
  store <64 x float> %sum3.3, ptr %out3, align 4
  %out4 = getelementptr i8, ptr %out, i64 1024
  store <64 x float> %sum4.3, ptr %out4, align 4
  ret void
}
