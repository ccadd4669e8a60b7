; The border: a mask that serves words and bytes is one of words as long as more gain by it than lose. Parts of it are
; parts of its words.
; RUN: kiln-opt --passes=word-masks --cpu=x86-64-v3 %s | FileCheck %s

declare void @llvm.masked.store.v8i32.p0(<8 x i32>, ptr, i32, <8 x i1>)

; Two comparisons of words, a masked store of words, less two selects of bytes.
; CHECK-LABEL: @mostly_words(
; CHECK: and <16 x i32>
; CHECK: %[[PART:.*]] = shufflevector <16 x i32> %{{.*}}, <16 x i32> poison, <8 x i32> <i32 8,
; CHECK: %[[MASK:.*]] = icmp slt <8 x i32> %[[PART]], zeroinitializer
; CHECK: masked.store.v8i32.p0(<8 x i32> %value, ptr %p, i32 4, <8 x i1> %[[MASK]])
define <16 x i8> @mostly_words(ptr %p, <16 x i32> %x, <16 x i32> %y, <8 x i32> %value, <16 x i8> %c) {
  %a = icmp slt <16 x i32> %x, zeroinitializer
  %b = icmp slt <16 x i32> %y, zeroinitializer
  %both = and <16 x i1> %a, %b
  %high = shufflevector <16 x i1> %both, <16 x i1> poison, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  call void @llvm.masked.store.v8i32.p0(<8 x i32> %value, ptr %p, i32 4, <8 x i1> %high)
  %chosen = select <16 x i1> %both, <16 x i8> %c, <16 x i8> zeroinitializer
  ret <16 x i8> %chosen
}

; CHECK-LABEL: @mostly_bytes(
; CHECK: and <16 x i1>
define <16 x i8> @mostly_bytes(<16 x i8> %x, <16 x i32> %y, <16 x i8> %c) {
  %a = icmp slt <16 x i8> %x, zeroinitializer
  %b = icmp slt <16 x i32> %y, zeroinitializer
  %both = and <16 x i1> %a, %b
  %chosen = select <16 x i1> %both, <16 x i8> %c, <16 x i8> zeroinitializer
  ret <16 x i8> %chosen
}
