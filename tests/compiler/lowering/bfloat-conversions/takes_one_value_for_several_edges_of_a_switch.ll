; Two edges from one block must bring the same bits to the phi.
; RUN: kiln-opt --passes=bfloat-conversions %s | FileCheck %s

; CHECK-LABEL: define void @f(
; CHECK: [[X:%.*]] = bitcast bfloat %x to i16
; CHECK: phi i16 [ [[X]], %entry ], [ [[X]], %entry ], [ {{%.*}}, %other ]
define void @f(bfloat %x, bfloat %y, ptr %q, i32 %i) {
entry:
  switch i32 %i, label %other [ i32 0, label %end
                                i32 1, label %end ]
other:
  br label %end
end:
  %z = phi bfloat [ %x, %entry ], [ %x, %entry ], [ %y, %other ]
  store bfloat %z, ptr %q
  ret void
}
