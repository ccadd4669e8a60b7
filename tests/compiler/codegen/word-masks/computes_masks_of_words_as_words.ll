; Booleans that are made of comparisons of words, and that mask and select words, are words: conjunctions, phis over
; blocks, and a test whether any lane is left.
; RUN: kiln-opt --passes=word-masks --cpu=x86-64-v3 %s | FileCheck %s

declare <8 x float> @llvm.masked.load.v8f32.p0(ptr, i32, <8 x i1>, <8 x float>)

; CHECK-LABEL: @conjunction(
; CHECK: %[[A:.*]] = sext <8 x i1> %a to <8 x i32>
; CHECK: %[[B:.*]] = sext <8 x i1> %b to <8 x i32>
; CHECK: %[[BOTH:.*]] = and <8 x i32> %[[A]], %[[B]]
; CHECK: %[[MASK:.*]] = icmp slt <8 x i32> %[[BOTH]], zeroinitializer
; CHECK: call <8 x float> @llvm.masked.load.v8f32.p0(ptr %p, i32 4, <8 x i1> %[[MASK]]
define <8 x float> @conjunction(ptr %p, <8 x i32> %x, <8 x float> %y) {
  %a = icmp slt <8 x i32> %x, zeroinitializer
  %b = fcmp olt <8 x float> %y, zeroinitializer
  %both = and <8 x i1> %a, %b
  %value = call <8 x float> @llvm.masked.load.v8f32.p0(ptr %p, i32 4, <8 x i1> %both, <8 x float> zeroinitializer)
  ret <8 x float> %value
}

; What is poison where the first is false stays unseen.
; CHECK-LABEL: @logical(
; CHECK: %[[FROZEN:.*]] = freeze <8 x i32> %{{.*}}
; CHECK: and <8 x i32> %{{.*}}, %[[FROZEN]]
define <8 x i32> @logical(<8 x i32> %x, <8 x i32> %y) {
  %a = icmp slt <8 x i32> %x, zeroinitializer
  %b = icmp slt <8 x i32> %y, zeroinitializer
  %both = select <8 x i1> %a, <8 x i1> %b, <8 x i1> zeroinitializer
  %value = select <8 x i1> %both, <8 x i32> %x, <8 x i32> %y
  ret <8 x i32> %value
}

; CHECK-LABEL: @loop(
; CHECK: loop:
; CHECK: %[[LIVE:.*]] = phi <8 x i32> [ %[[FIRST:.*]], %entry ], [ %[[LEFT:.*]], %loop ]
; CHECK: %[[LEFT]] = and <8 x i32> %[[LIVE]],
; CHECK: %[[ANY:.*]] = call i32 @llvm.vector.reduce.or.v8i32(<8 x i32> %[[LEFT]])
; CHECK: icmp ne i32 %[[ANY]], 0
define <8 x i32> @loop(<8 x i32> %x, <8 x i32> %n) {
entry:
  %first = icmp sgt <8 x i32> %n, zeroinitializer
  br label %loop
loop:
  %live = phi <8 x i1> [ %first, %entry ], [ %left, %loop ]
  %sum = phi <8 x i32> [ zeroinitializer, %entry ], [ %kept, %loop ]
  %next = add <8 x i32> %sum, %x
  %kept = select <8 x i1> %live, <8 x i32> %next, <8 x i32> %sum
  %more = icmp slt <8 x i32> %kept, %n
  %left = and <8 x i1> %live, %more
  %bits = bitcast <8 x i1> %left to i8
  %any = icmp ne i8 %bits, 0
  br i1 %any, label %loop, label %end
end:
  ret <8 x i32> %kept
}

; Two edges from one block have one value.
; CHECK-LABEL: @two_edges(
; CHECK: %[[WORDS:.*]] = sext <8 x i1> %a to <8 x i32>
; CHECK: phi <8 x i32> [ %[[WORDS]], %entry ], [ %[[WORDS]], %entry ], [ zeroinitializer, %other ]
define <8 x i32> @two_edges(<8 x i32> %x, i32 %n) {
entry:
  %a = icmp slt <8 x i32> %x, zeroinitializer
  switch i32 %n, label %other [
    i32 0, label %end
    i32 1, label %end
  ]
other:
  br label %end
end:
  %mask = phi <8 x i1> [ %a, %entry ], [ %a, %entry ], [ zeroinitializer, %other ]
  %value = select <8 x i1> %mask, <8 x i32> %x, <8 x i32> zeroinitializer
  ret <8 x i32> %value
}

; What is frozen may be any word: its sign is the boolean.
; CHECK-LABEL: @frozen(
; CHECK: %[[FROZEN:.*]] = freeze <8 x i32>
; CHECK: %[[WORDS:.*]] = ashr <8 x i32> %[[FROZEN]], <i32 31,
; CHECK: store <8 x i32> %[[WORDS]], ptr %p
define void @frozen(ptr %p, <8 x i32> %x, <8 x i32> %y, i1 %c) {
entry:
  br i1 %c, label %then, label %end
then:
  %a = icmp slt <8 x i32> %x, zeroinitializer
  %b = icmp slt <8 x i32> %y, zeroinitializer
  %both = and <8 x i1> %a, %b
  br label %end
end:
  %m = phi <8 x i1> [ %both, %then ], [ poison, %entry ]
  %f = freeze <8 x i1> %m
  %w = sext <8 x i1> %f to <8 x i32>
  store <8 x i32> %w, ptr %p
  ret void
}

; A part in a phi of two edges has one value.
; CHECK-LABEL: @part_of_two_edges(
; CHECK: %[[PART:.*]] = icmp slt <8 x i32> %{{.*}}, zeroinitializer
; CHECK: phi <8 x i1> [ %[[PART]], %entry ], [ %[[PART]], %entry ]
define <8 x i8> @part_of_two_edges(<16 x i32> %x, <16 x i32> %y, <8 x i8> %c, i32 %n) {
entry:
  %a = icmp slt <16 x i32> %x, zeroinitializer
  %b = icmp slt <16 x i32> %y, zeroinitializer
  %both = and <16 x i1> %a, %b
  %part = shufflevector <16 x i1> %both, <16 x i1> poison, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  switch i32 %n, label %other [
    i32 0, label %end
    i32 1, label %end
  ]
other:
  br label %end
end:
  %m = phi <8 x i1> [ %part, %entry ], [ %part, %entry ], [ zeroinitializer, %other ]
  %v = select <8 x i1> %m, <8 x i8> %c, <8 x i8> zeroinitializer
  ret <8 x i8> %v
}
