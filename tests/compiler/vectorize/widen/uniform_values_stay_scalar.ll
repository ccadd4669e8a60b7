; What is the same in all lanes is computed once: arithmetic, a load, a branch and a loop stay as they are, and a
; uniform store is one store. A vector is made only where a divergent value needs it.
; RUN: kiln-opt --passes=widen --full %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @arithmetic_and_memory(
; CHECK-NOT: <32 x
; CHECK: %i = add i32 %n, 1
; CHECK: %v = load float, ptr %from
; CHECK: %square = fmul float %v, %v
; CHECK: store float %square, ptr %y
; CHECK-NOT: <32 x
; CHECK: ret void
define void @arithmetic_and_memory(ptr %x, ptr %y, i32 %n, i32 %lanes) {
  %i = add i32 %n, 1
  %from = getelementptr float, ptr %x, i32 %i
  %v = load float, ptr %from
  %square = fmul float %v, %v
  store float %square, ptr %y
  ret void
}

; CHECK-LABEL: define void @branch(
; CHECK: br i1 %c, label %then, label %else
; CHECK: ret void
define void @branch(ptr %y, i1 %c, i32 %lanes) {
entry:
  %lane = call i32 @__kiln_lane()
  %to = getelementptr i32, ptr %y, i32 %lane
  br i1 %c, label %then, label %else
then:
  store i32 1, ptr %to
  br label %join
else:
  store i32 2, ptr %to
  br label %join
join:
  ret void
}

; The counter is scalar, the sum of lanes is not.
; CHECK-LABEL: define void @loop(
; CHECK: loop:
; CHECK-DAG: %i = phi i32 [ 0,
; CHECK-DAG: %sum = phi <32 x i32> [ zeroinitializer,
; CHECK: add <32 x i32> %sum, <i32 0, i32 1, i32 2,
; CHECK: %again = icmp ult i32 %i.next, %n
; CHECK-NEXT: br i1 %again, label %loop, label %done
define void @loop(ptr %y, i32 %n, i32 %lanes) {
entry:
  %lane = call i32 @__kiln_lane()
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %sum.next, %loop ]
  %sum.next = add i32 %sum, %lane
  %i.next = add i32 %i, 1
  %again = icmp ult i32 %i.next, %n
  br i1 %again, label %loop, label %done
done:
  %to = getelementptr i32, ptr %y, i32 %lane
  store i32 %sum.next, ptr %to
  ret void
}
