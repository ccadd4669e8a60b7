; A mask has the lanes that are still in the loop. A lane that has left keeps the values it left with, and the loop ends
; when the mask is empty. What is uniform inside stays scalar.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @sum(
; CHECK: loop:
; CHECK-DAG: %i = phi i32 [ 0, %{{.*}} ], [ %i.next, %loop ]
; CHECK-DAG: %sum = phi <32 x i32> [ zeroinitializer, %{{.*}} ], [ %[[KEPT:.*]], %loop ]
; CHECK-DAG: %[[LIVE:.*]] = phi <32 x i1> [ <i1 true, {{.*}}>, %{{.*}} ], [ %[[STAYING:.*]], %loop ]
; CHECK: %[[NEXT:.*]] = add <32 x i32> %sum, <i32 0, i32 1,
; CHECK: %[[AGAIN:.*]] = icmp ult <32 x i32>
; CHECK-NEXT: %[[STAYING]] = select <32 x i1> %[[LIVE]], <32 x i1> %[[AGAIN]], <32 x i1> zeroinitializer
; CHECK-NEXT: %[[KEPT]] = select <32 x i1> %[[LIVE]], <32 x i32> %[[NEXT]], <32 x i32> %sum
; CHECK-NEXT: %[[BITS:.*]] = bitcast <32 x i1> %[[STAYING]] to i32
; CHECK-NEXT: %[[ANY:.*]] = icmp ne i32 %[[BITS]], 0
; CHECK-NEXT: br i1 %[[ANY]], label %loop, label %done
; CHECK: done:
; CHECK: %[[S:.*]] = phi <32 x i32> [ %[[KEPT]], %loop ]
; CHECK: store <32 x i32> %[[S]]
define void @sum(ptr %y, i32 %lanes) {
entry:
  %lane = call i32 @__kiln_lane()
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %sum.next, %loop ]
  %sum.next = add i32 %sum, %lane
  %i.next = add i32 %i, 1
  %again = icmp ult i32 %i.next, %lane
  br i1 %again, label %loop, label %done
done:
  %s = phi i32 [ %sum.next, %loop ]
  %to = getelementptr i32, ptr %y, i32 %lane
  store i32 %s, ptr %to
  ret void
}
