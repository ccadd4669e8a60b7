; A guarded compare-exchange gives a phi of a structure. Of it only components are used, so each becomes a phi of its
; own, one for each component however many uses it has.
; RUN: kiln-opt --passes=structure-phis %s | FileCheck %s

; CHECK-LABEL: define i32 @f(
; CHECK: inside:
; CHECK: %r = cmpxchg
; CHECK-DAG: [[OLD:%.*]] = extractvalue { i32, i1 } %r, 0
; CHECK-DAG: [[DONE:%.*]] = extractvalue { i32, i1 } %r, 1
; CHECK: br label %end
; CHECK: end:
; CHECK-NOT: phi { i32, i1 }
; CHECK-DAG: [[VALUE:%.*]] = phi i32 [ [[OLD]], %inside ], [ 0, %entry ]
; CHECK-DAG: [[SUCCESS:%.*]] = phi i1 [ [[DONE]], %inside ], [ true, %entry ]
; CHECK-NOT: {{phi|extractvalue}}
; CHECK: select i1 [[SUCCESS]], i32 [[VALUE]], i32 7
; CHECK: add i32 {{.*}}, [[VALUE]]
; CHECK: ret i32
define i32 @f(ptr %p, i1 %c) {
entry:
  br i1 %c, label %inside, label %end

inside:
  %r = cmpxchg ptr %p, i32 0, i32 1 monotonic monotonic
  br label %end

end:
  %m = phi { i32, i1 } [ %r, %inside ], [ { i32 0, i1 true }, %entry ]
  %v = extractvalue { i32, i1 } %m, 0
  %s = extractvalue { i32, i1 } %m, 1
  %x = select i1 %s, i32 %v, i32 7
  %again = extractvalue { i32, i1 } %m, 0
  %y = add i32 %x, %again
  ret i32 %y
}
