; Two edges from one block must bring the same value to the phi of a component.
; RUN: kiln-opt --passes=structure-phis %s | FileCheck %s

; CHECK-LABEL: define i32 @f(
; CHECK: [[X:%.*]] = extractvalue { i32, i1 } %x, 0
; CHECK: phi i32 [ [[X]], %entry ], [ [[X]], %entry ], [ {{%.*}}, %other ]
define i32 @f({ i32, i1 } %x, { i32, i1 } %y, i32 %i) {
entry:
  switch i32 %i, label %other [ i32 0, label %end
                                i32 1, label %end ]
other:
  br label %end
end:
  %z = phi { i32, i1 } [ %x, %entry ], [ %x, %entry ], [ %y, %other ]
  %v = extractvalue { i32, i1 } %z, 0
  ret i32 %v
}
