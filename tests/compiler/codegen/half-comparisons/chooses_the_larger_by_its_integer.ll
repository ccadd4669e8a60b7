; The min/max idiom is a select by keys, and a chain of them compares with the larger key. What a loop carries has its
; key carried, too: the next comparison does not wait for the select.
; RUN: kiln-opt --passes=half-comparisons --cpu=x86-64-v4 %s | FileCheck %s

; CHECK-LABEL: @largest(
; CHECK: loop:
; CHECK: %[[BEST:.*]] = phi <4 x i16> [ <i16 -30721, i16 -30721, i16 -30721, i16 -30721>, %entry ], [ %[[NEXT:.*]], %loop ]
; CHECK: %[[TAKES:.*]] = icmp sgt <4 x i16> %[[KEY:.*]], %[[BEST]]
; CHECK: select <4 x i1> %[[TAKES]]
; CHECK: %[[NEXT]] = call <4 x i16> @llvm.smax.v4i16(<4 x i16> %[[BEST]], <4 x i16> %[[KEY]])
; CHECK-NOT: fcmp
; CHECK: ret
define <4 x half> @largest(ptr %in, i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %best = phi <4 x half> [ splat (half 0xHFC00), %entry ], [ %result, %loop ]
  %address = getelementptr <4 x half>, ptr %in, i32 %i
  %value = load <4 x half>, ptr %address
  %less = fcmp olt <4 x half> %best, %value
  %nan = fcmp uno <4 x half> %best, zeroinitializer
  %either = or <4 x i1> %less, %nan
  %result = select <4 x i1> %either, <4 x half> %value, <4 x half> %best
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret <4 x half> %result
}

; The smaller: NaNs are greatest.
; CHECK-LABEL: @smallest_of_three(
; CHECK: add <4 x i16> %{{.*}}, <i16 -1024, i16 -1024, i16 -1024, i16 -1024>
; CHECK: %[[FIRST:.*]] = icmp slt <4 x i16> %[[KEY_B:.*]], %[[KEY_A:.*]]
; CHECK: %[[KEY:.*]] = call <4 x i16> @llvm.smin.v4i16(<4 x i16> %[[KEY_A]], <4 x i16> %[[KEY_B]])
; CHECK: icmp slt <4 x i16> %{{.*}}, %[[KEY]]
define <4 x half> @smallest_of_three(<4 x half> %a, <4 x half> %b, <4 x half> %c) {
  %more = fcmp ogt <4 x half> %a, %b
  %nan = fcmp uno <4 x half> %a, zeroinitializer
  %either = or <4 x i1> %more, %nan
  %two = select <4 x i1> %either, <4 x half> %b, <4 x half> %a
  %more.2 = fcmp ogt <4 x half> %two, %c
  %nan.2 = fcmp uno <4 x half> %two, zeroinitializer
  %either.2 = or <4 x i1> %more.2, %nan.2
  %three = select <4 x i1> %either.2, <4 x half> %c, <4 x half> %two
  ret <4 x half> %three
}
