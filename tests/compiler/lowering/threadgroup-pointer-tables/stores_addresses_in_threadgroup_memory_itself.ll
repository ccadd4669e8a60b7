; A constant that holds addresses in threadgroup memory becomes a variable of the thread, which stores them member by
; member, nested ones too. Members that are not known are not stored.
; RUN: kiln-opt --passes=threadgroup-pointer-tables %s | FileCheck %s

@shared = internal global [16 x float] undef, section "kiln.threadgroup", align 16

; CHECK-NOT: @halves
@halves = internal constant [2 x ptr] [ptr @shared, ptr getelementptr (i8, ptr @shared, i64 32)], align 16

; CHECK-LABEL: define float @body(
; CHECK: [[TABLE:%.*]] = alloca [2 x ptr], align 16
; CHECK-DAG: [[FIRST:%.*]] = getelementptr {{.*}}[2 x ptr], ptr [[TABLE]], i32 0, i32 0
; CHECK-DAG: store ptr @shared, ptr [[FIRST]]
; CHECK-DAG: [[SECOND:%.*]] = getelementptr {{.*}}[2 x ptr], ptr [[TABLE]], i32 0, i32 1
; CHECK-DAG: store ptr getelementptr (i8, ptr @shared, i64 32), ptr [[SECOND]]
; CHECK: %slot = getelementptr [2 x ptr], ptr [[TABLE]], i64 0, i64 %i
; CHECK: ret float
define float @body(i64 %i) {
  %slot = getelementptr [2 x ptr], ptr @halves, i64 0, i64 %i
  %p = load ptr, ptr %slot
  %x = load float, ptr %p
  ret float %x
}
