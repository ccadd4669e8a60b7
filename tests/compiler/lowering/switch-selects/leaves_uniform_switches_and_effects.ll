; A jump is cheaper where all lanes take one case. Cases with effects, divisions, which may be undefined, and cases that
; do not meet stay.
; RUN: kiln-opt --passes=switch-selects %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define i32 @uniform(
; CHECK: switch
define i32 @uniform(i32 %n) {
entry:
  switch i32 %n, label %end [ i32 0, label %one ]
one:
  br label %end
end:
  %r = phi i32 [ 0, %entry ], [ 1, %one ]
  ret i32 %r
}

; CHECK-LABEL: define i32 @with_a_store(
; CHECK: switch
define i32 @with_a_store(ptr %x) {
entry:
  %lane = call i32 @__kiln_lane()
  switch i32 %lane, label %end [ i32 0, label %one ]
one:
  store i32 1, ptr %x
  br label %end
end:
  %r = phi i32 [ 0, %entry ], [ 1, %one ]
  ret i32 %r
}

; CHECK-LABEL: define i32 @with_a_division(
; CHECK: switch
define i32 @with_a_division(i32 %a, i32 %b) {
entry:
  %lane = call i32 @__kiln_lane()
  switch i32 %lane, label %end [ i32 0, label %one ]
one:
  %quotient = udiv i32 %a, %b
  br label %end
end:
  %r = phi i32 [ 0, %entry ], [ %quotient, %one ]
  ret i32 %r
}

; CHECK-LABEL: define i32 @that_return(
; CHECK: switch
define i32 @that_return() {
entry:
  %lane = call i32 @__kiln_lane()
  switch i32 %lane, label %end [ i32 0, label %one ]
one:
  ret i32 5
end:
  ret i32 7
}
