; A maximum that begins with a number stays one: the NaN test of the loop-carried value is dropped. (With a first value
; that may be a NaN, the test stays.)
; RUN: kiln-opt --passes=min-max-idiom %s | FileCheck %s

; CHECK-LABEL: @from_infinity(
; CHECK: %[[BEST:.*]] = select i1 %less, float %value, float %best
; CHECK-NEXT: %next
; CHECK: ret float %[[BEST]]
define float @from_infinity(ptr %in, i32 %n, float %first) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %best = phi float [ 0xFFF0000000000000, %entry ], [ %result, %loop ]
  %address = getelementptr float, ptr %in, i32 %i
  %value = load float, ptr %address
  %less = fcmp olt float %best, %value
  %nan = fcmp uno float %best, 0.0
  %either = or i1 %less, %nan
  %result = select i1 %either, float %value, float %best
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret float %result
}

; CHECK-LABEL: @from_a_parameter(
; CHECK: %[[BEST:.*]] = select i1 %less, float %value, float %best
; CHECK-NEXT: %[[NAN:.*]] = fcmp uno float %best, %best
; CHECK-NEXT: select i1 %[[NAN]], float %value, float %[[BEST]]
define float @from_a_parameter(ptr %in, i32 %n, float %first) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %best = phi float [ %first, %entry ], [ %result, %loop ]
  %address = getelementptr float, ptr %in, i32 %i
  %value = load float, ptr %address
  %less = fcmp olt float %best, %value
  %nan = fcmp uno float %best, 0.0
  %either = or i1 %less, %nan
  %result = select i1 %either, float %value, float %best
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret float %result
}

; CHECK-LABEL: @from_a_nan(
; CHECK: %[[BEST:.*]] = select i1 %less, float %value, float %best
; CHECK-NEXT: fcmp uno float %best, %best
define float @from_a_nan(ptr %in, i32 %n, float %first) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %best = phi float [ 0x7FF8000000000000, %entry ], [ %result, %loop ]
  %address = getelementptr float, ptr %in, i32 %i
  %value = load float, ptr %address
  %less = fcmp olt float %best, %value
  %nan = fcmp uno float %best, 0.0
  %either = or i1 %less, %nan
  %result = select i1 %either, float %value, float %best
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret float %result
}

; Converted integers are numbers.
; CHECK-LABEL: @converted(
; CHECK: %[[MAX:.*]] = select i1 %less, float %b, float %a
; CHECK-NEXT: ret float %[[MAX]]
define float @converted(i32 %x, float %b) {
  %a = sitofp i32 %x to float
  %less = fcmp olt float %a, %b
  %nan = fcmp uno float %a, 0.0
  %either = or i1 %less, %nan
  %result = select i1 %either, float %b, float %a
  ret float %result
}
