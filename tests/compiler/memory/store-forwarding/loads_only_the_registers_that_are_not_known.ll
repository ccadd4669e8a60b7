; Of a load of two registers one was stored here. It is forwarded, and only the other one is loaded. With registers
; twice as large it is one register, of which a half is not known: the load stays.
; RUN: kiln-opt --passes=store-forwarding --cpu=x86-64-v3 %s | FileCheck %s --check-prefixes=CHECK,AVX2
; RUN: kiln-opt --passes=store-forwarding --cpu=x86-64-v4 %s | FileCheck %s --check-prefixes=CHECK,AVX512

; CHECK-LABEL: @half_known(
; CHECK: store <8 x float> %one, ptr %memory
; AVX2: %[[AT:.+]] = getelementptr i8, ptr %memory, i64 32
; AVX2: %[[OTHER:.+]] = load <8 x float>, ptr %[[AT]], align 4
; AVX2-NOT: load
; AVX2: shufflevector <8 x float> {{.+}}, <8 x float> %[[OTHER]], <16 x i32>
; AVX512: %both = load <16 x float>, ptr %memory, align 4
; AVX512: ret <16 x float> %both
define <16 x float> @half_known(ptr %launch, ptr %record, <8 x float> %one) {
  %memory.at = getelementptr i8, ptr %record, i64 104
  %memory = load ptr, ptr %memory.at, !invariant.load !0
  store <8 x float> %one, ptr %memory, align 4
  %both = load <16 x float>, ptr %memory, align 4
  ret <16 x float> %both
}

!0 = !{}
