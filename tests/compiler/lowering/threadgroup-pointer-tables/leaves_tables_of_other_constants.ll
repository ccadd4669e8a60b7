; Numbers, and addresses of constants and of variables outside of threadgroup memory, are the same for all threadgroups:
; such tables stay constants.
; RUN: kiln-opt --passes=threadgroup-pointer-tables %s | FileCheck %s

@numbers = internal constant [2 x i32] [i32 1, i32 2]
@ordinary = internal global [16 x float] zeroinitializer

; CHECK: @table = internal constant [2 x ptr] [ptr @numbers, ptr @ordinary]
@table = internal constant [2 x ptr] [ptr @numbers, ptr @ordinary]

; CHECK-LABEL: define i32 @body(
; CHECK-NOT: alloca
; CHECK: %slot = getelementptr [2 x ptr], ptr @table, i64 0, i64 %i
; CHECK: %n = getelementptr [2 x i32], ptr @numbers, i64 0, i64 %i
define i32 @body(i64 %i) {
  %slot = getelementptr [2 x ptr], ptr @table, i64 0, i64 %i
  %p = load ptr, ptr %slot
  %n = getelementptr [2 x i32], ptr @numbers, i64 0, i64 %i
  %x = load i32, ptr %n
  ret i32 %x
}
