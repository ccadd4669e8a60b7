; After structurization the second side of an if/else runs where the phi is true, which is false after the first side.
; The phi becomes the condition of the first branch. A branch takes a complement by its order of successors.
; RUN: kiln-opt --passes=flow-conditions %s | FileCheck %s
; RUN: kiln-opt --passes=structurize,flow-conditions %s | FileCheck --check-prefix=STRUCTURED %s

; CHECK-LABEL: define void @complement(
; CHECK: br i1 %c, label %first, label %flow
; CHECK: flow:
; CHECK-NEXT: %v = phi i32 [ 1, %first ], [ 0, %entry ]
; CHECK-NEXT: br i1 %c, label %end, label %second
; CHECK: second:
; CHECK-NEXT: store i32 %v, ptr %x
define void @complement(ptr %x, i1 %c) {
entry:
  br i1 %c, label %first, label %flow
first:
  br label %flow
flow:
  %v = phi i32 [ 1, %first ], [ 0, %entry ]
  %other = phi i1 [ false, %first ], [ true, %entry ]
  br i1 %other, label %second, label %end
second:
  store i32 %v, ptr %x
  br label %end
end:
  ret void
}

; The first side is the false successor's: true after it is the complement, and true past it the condition.
; CHECK-LABEL: define void @condition(
; CHECK: br i1 %c, label %flow, label %first
; CHECK: flow:
; CHECK-NEXT: br i1 %c, label %second, label %end
define void @condition(ptr %x, i1 %c) {
entry:
  br i1 %c, label %flow, label %first
first:
  store i32 1, ptr %x
  br label %flow
flow:
  %other = phi i1 [ false, %first ], [ true, %entry ]
  br i1 %other, label %second, label %end
second:
  store i32 2, ptr %x
  br label %end
end:
  ret void
}

; The side has blocks of its own between.
; CHECK-LABEL: define void @long_side(
; CHECK: flow:
; CHECK-NEXT: br i1 %c, label %end, label %second
define void @long_side(ptr %x, i1 %c, i1 %d) {
entry:
  br i1 %c, label %first, label %flow
first:
  br i1 %d, label %inner, label %inner_end
inner:
  store i32 1, ptr %x
  br label %inner_end
inner_end:
  br label %flow
flow:
  %other = phi i1 [ false, %inner_end ], [ true, %entry ]
  br i1 %other, label %second, label %end
second:
  store i32 2, ptr %x
  br label %end
end:
  ret void
}

declare i32 @__kiln_lane()

; STRUCTURED-LABEL: define void @if_else(
; STRUCTURED: br i1 %[[C:.*]], label %[[FIRST:.*]], label %[[FLOW:.*]]
; STRUCTURED-NOT: phi i1
; STRUCTURED: br i1 %[[C]], label
; STRUCTURED: }
define void @if_else(ptr %x, i32 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  %c = icmp ult i32 %lane, %n
  br i1 %c, label %then, label %else
then:
  store i32 1, ptr %x
  br label %end
else:
  store i32 2, ptr %x
  br label %end
end:
  ret void
}
