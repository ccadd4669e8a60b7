; Booleans of bytes and of numbers of 64 bits, of which a mask of words would be made and unmade, and single comparisons
; stay.
; RUN: kiln-opt --passes=word-masks --cpu=x86-64-v3 %s | FileCheck %s --implicit-check-not=sext

; CHECK-LABEL: @bytes(
; CHECK: and <32 x i1>
define <32 x i8> @bytes(<32 x i8> %x, <32 x i8> %y) {
  %a = icmp slt <32 x i8> %x, zeroinitializer
  %b = icmp slt <32 x i8> %y, zeroinitializer
  %both = and <32 x i1> %a, %b
  %value = select <32 x i1> %both, <32 x i8> %x, <32 x i8> %y
  ret <32 x i8> %value
}

; CHECK-LABEL: @wide(
; CHECK: or <8 x i1>
define <8 x i64> @wide(<8 x i64> %x, <8 x i64> %y) {
  %a = icmp slt <8 x i64> %x, zeroinitializer
  %b = icmp slt <8 x i64> %y, zeroinitializer
  %either = or <8 x i1> %a, %b
  %value = select <8 x i1> %either, <8 x i64> %x, <8 x i64> %y
  ret <8 x i64> %value
}

; CHECK-LABEL: @single(
; CHECK: select <8 x i1> %a
define <8 x i32> @single(<8 x i32> %x, <8 x i32> %y) {
  %a = icmp slt <8 x i32> %x, zeroinitializer
  %value = select <8 x i1> %a, <8 x i32> %x, <8 x i32> %y
  ret <8 x i32> %value
}
