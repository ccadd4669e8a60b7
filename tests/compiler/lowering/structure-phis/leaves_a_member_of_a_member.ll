; The border is the depth: a component of the structure is split off, a part of a component keeps the phi. A component
; that is itself a structure, used whole, counts as a component.
; RUN: kiln-opt --passes=structure-phis %s | FileCheck %s

; CHECK-LABEL: define i32 @part_of_a_component(
; CHECK: %m = phi { i32, { i32, i1 } }
; CHECK: %v = extractvalue { i32, { i32, i1 } } %m, 1, 0
define i32 @part_of_a_component({ i32, { i32, i1 } } %x, { i32, { i32, i1 } } %y, i1 %c) {
entry:
  br i1 %c, label %other, label %end

other:
  br label %end

end:
  %m = phi { i32, { i32, i1 } } [ %x, %entry ], [ %y, %other ]
  %v = extractvalue { i32, { i32, i1 } } %m, 1, 0
  ret i32 %v
}

; CHECK-LABEL: define { i32, i1 } @component(
; CHECK: end:
; CHECK-NEXT: [[PART:%.*]] = phi { i32, i1 }
; CHECK-NEXT: ret { i32, i1 } [[PART]]
define { i32, i1 } @component({ i32, { i32, i1 } } %x, { i32, { i32, i1 } } %y, i1 %c) {
entry:
  br i1 %c, label %other, label %end

other:
  br label %end

end:
  %m = phi { i32, { i32, i1 } } [ %x, %entry ], [ %y, %other ]
  %v = extractvalue { i32, { i32, i1 } } %m, 1
  ret { i32, i1 } %v
}
