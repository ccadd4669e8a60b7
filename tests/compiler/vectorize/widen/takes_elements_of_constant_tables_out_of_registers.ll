; A constant of a few registers is looked up by permutations: 16 words are a register of AVX-512, two of them one
; instruction, and two registers with AVX2, of which a bit of the index chooses. Bytes are parts of words.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s --check-prefixes=BOTH,WIDE
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v3 %s | FileCheck %s --check-prefixes=BOTH,NARROW

@words = internal constant [16 x i32] [i32 10, i32 11, i32 12, i32 13, i32 14, i32 15, i32 16, i32 17, i32 18, i32 19, i32 20, i32 21, i32 22, i32 23, i32 24, i32 25]
@letters = internal constant [65 x i8] c"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/\00"

declare i32 @__kiln_lane()

; BOTH-LABEL: define void @of_words(
; BOTH-NOT: gather
; WIDE-COUNT-2: call <16 x i32> @llvm.x86.avx512.permvar.si.512(<16 x i32> <i32 10, {{.*}}i32 25>
; NARROW: call <8 x i32> @llvm.x86.avx2.permd(<8 x i32> <i32 10, {{.*}}i32 17>
; NARROW: call <8 x i32> @llvm.x86.avx2.permd(<8 x i32> <i32 18, {{.*}}i32 25>
; NARROW: and <8 x i32> %{{.*}}, <i32 8, {{.*}}>
; NARROW: select <8 x i1>
; BOTH: ret void
define void @of_words(ptr %indices, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i32, ptr %indices, i32 %lane
  %k = load i32, ptr %at
  %from = getelementptr [16 x i32], ptr @words, i64 0, i32 %k
  %v = load i32, ptr %from
  %to = getelementptr i32, ptr %y, i32 %lane
  store i32 %v, ptr %to
  ret void
}

; 65 bytes are 17 words, with AVX-512 two registers.
; BOTH-LABEL: define void @of_bytes(
; BOTH-NOT: gather
; WIDE: %[[WORD:.*]] = lshr <32 x i32> %[[K:.*]], <i32 2, {{.*}}>
; WIDE-COUNT-2: call <16 x i32> @llvm.x86.avx512.vpermi2var.d.512
; WIDE: and <32 x i32> %[[K]], <i32 3, {{.*}}>
; WIDE: trunc <32 x i32> %{{.*}} to <32 x i8>
; BOTH: ret void
define void @of_bytes(ptr %indices, ptr %y) {
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i32, ptr %indices, i32 %lane
  %k = load i32, ptr %at
  %from = getelementptr i8, ptr @letters, i32 %k
  %v = load i8, ptr %from
  %to = getelementptr i8, ptr %y, i32 %lane
  store i8 %v, ptr %to
  ret void
}
