; Lane 0 takes numbers for all if there are any to take: no lane comes before it, and its old value is what it found.
; Two lanes may be on the other side, and one has to come after the other.
; RUN: kiln-opt --passes=widen --full --cpu=x86-64-v4 %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @one(
; CHECK: %[[OLD:.*]] = atomicrmw add ptr %counter, i32 %n monotonic
; CHECK-NOT: call <32 x i32> @llvm.ctpop
; CHECK: ret void
define void @one(ptr %counter, i32 %n, i32 %votes, ptr %y) {
entry:
  %lane = call i32 @__kiln_lane()
  %first = icmp eq i32 %lane, 0
  %some = icmp ne i32 %votes, 0
  %c = select i1 %first, i1 %some, i1 false
  br i1 %c, label %take, label %end
take:
  %old = atomicrmw add ptr %counter, i32 %n monotonic
  br label %end
end:
  %r = phi i32 [ 0, %entry ], [ %old, %take ]
  %to = getelementptr i32, ptr %y, i32 %lane
  store i32 %r, ptr %to
  ret void
}

; CHECK-LABEL: define void @two(
; CHECK: call i32 @llvm.ctpop.i32
; CHECK: atomicrmw add
; CHECK: call <32 x i32> @llvm.ctpop
define void @two(ptr %counter, i32 %n, i32 %votes, ptr %y) {
entry:
  %lane = call i32 @__kiln_lane()
  %first = icmp ult i32 %lane, 2
  %some = icmp ne i32 %votes, 0
  %c = select i1 %first, i1 %some, i1 false
  br i1 %c, label %take, label %end
take:
  %old = atomicrmw add ptr %counter, i32 %n monotonic
  br label %end
end:
  %r = phi i32 [ 0, %entry ], [ %old, %take ]
  %to = getelementptr i32, ptr %y, i32 %lane
  store i32 %r, ptr %to
  ret void
}

; The operand is the lane's own, and the operation's old value is used.
; CHECK-LABEL: define void @own(
; CHECK: %[[V:.*]] = extractelement <32 x i32> %{{.*}}, {{i32|i64}} 3
; CHECK: atomicrmw max ptr %counter, i32 %[[V]] monotonic
; CHECK-NOT: reduce
; CHECK: ret void
define void @own(ptr %counter, i32 %votes, ptr %y) {
entry:
  %lane = call i32 @__kiln_lane()
  %to = getelementptr i32, ptr %y, i32 %lane
  %v = load i32, ptr %to
  %first = icmp eq i32 %lane, 3
  %some = icmp ne i32 %votes, 0
  %c = select i1 %first, i1 %some, i1 false
  br i1 %c, label %take, label %end
take:
  %old = atomicrmw max ptr %counter, i32 %v monotonic
  br label %end
end:
  %r = phi i32 [ 0, %entry ], [ %old, %take ]
  store i32 %r, ptr %to
  ret void
}
