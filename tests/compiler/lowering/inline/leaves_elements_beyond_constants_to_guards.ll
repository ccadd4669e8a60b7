; The inliner computes copies of instructions whose operands become constants. An element beyond a constant array would
; be poison; the guards, which come later, make it zero.
; RUN: kiln-opt --passes=inline --function=body %s | FileCheck %s --check-prefixes=CHECK,INLINE
; RUN: kiln-opt --passes=common-calls,inline --function=body %s | FileCheck %s

@table = internal constant [7 x i32] [i32 3, i32 -1, i32 4, i32 1, i32 -5, i32 9, i32 2]

; INLINE: @table = internal constant
; CHECK: define void @body(
; CHECK-NOT: poison
; CHECK: load i32, ptr getelementptr {{.*}}@table, i64 108)
; CHECK-NOT: poison
; CHECK: ret void
define void @body(ptr %out, i32 %x) {
  %a = call i32 @element(i64 27)
  %b = call i32 @element(i64 3)
  %sum = add i32 %a, %b
  store i32 %sum, ptr %out
  ret void
}

define internal i32 @element(i64 %k) {
entry:
  %address = getelementptr [7 x i32], ptr @table, i64 0, i64 %k
  %v = load i32, ptr %address
  %odd = trunc i32 %v to i1
  br i1 %odd, label %end, label %even
even:
  br label %end
end:
  %r = phi i32 [ %v, %entry ], [ 0, %even ]
  ret i32 %r
}
