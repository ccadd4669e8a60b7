; A structure that is returned, stored or handed on to another phi is needed whole, even if a component is used as well.
; RUN: kiln-opt --passes=structure-phis %s | FileCheck %s

; CHECK-LABEL: define { i32, i1 } @returned(
; CHECK: %m = phi { i32, i1 } [ %x, %entry ], [ %y, %other ]
; CHECK: extractvalue { i32, i1 } %m, 0
; CHECK: ret { i32, i1 } %m
define { i32, i1 } @returned({ i32, i1 } %x, { i32, i1 } %y, ptr %p, i1 %c) {
entry:
  br i1 %c, label %other, label %end

other:
  br label %end

end:
  %m = phi { i32, i1 } [ %x, %entry ], [ %y, %other ]
  %v = extractvalue { i32, i1 } %m, 0
  store i32 %v, ptr %p
  ret { i32, i1 } %m
}

; CHECK-LABEL: define i32 @handed_on(
; CHECK: loop:
; CHECK-NEXT: %m = phi { i32, i1 } [ %x, %entry ], [ %m, %loop ]
; CHECK: ret i32
define i32 @handed_on({ i32, i1 } %x, i1 %c) {
entry:
  br label %loop

loop:
  %m = phi { i32, i1 } [ %x, %entry ], [ %m, %loop ]
  %v = extractvalue { i32, i1 } %m, 0
  br i1 %c, label %loop, label %end

end:
  ret i32 %v
}

; CHECK-LABEL: define i32 @scalars(
; CHECK: %m = phi i32 [ %x, %entry ], [ %y, %other ]
define i32 @scalars(i32 %x, i32 %y, i1 %c) {
entry:
  br i1 %c, label %other, label %end

other:
  br label %end

end:
  %m = phi i32 [ %x, %entry ], [ %y, %other ]
  ret i32 %m
}
