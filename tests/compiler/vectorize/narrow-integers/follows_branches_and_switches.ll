; A phi of narrow values is narrow, and a switch takes the narrow value.
; RUN: kiln-opt --passes=narrow-integers %s | FileCheck %s

declare i32 @__kiln_lane()

; CHECK-LABEL: define i8 @joined(
; CHECK: %[[P:.*]] = phi i16 [ %{{.*}}, %entry ], [ %{{.*}}, %more ]
; CHECK: switch i16 %[[P]], label %other [
; CHECK-NEXT: i16 2, label %two
; CHECK-NEXT: i16 300, label %two
define i8 @joined(ptr %x, i1 %c) {
entry:
  %lane = call i32 @__kiln_lane()
  %at = getelementptr i8, ptr %x, i32 %lane
  %a = load i8, ptr %at
  %next = getelementptr i8, ptr %at, i64 1
  %b = load i8, ptr %next
  %wa = zext i8 %a to i32
  %wb = zext i8 %b to i32
  %s = add i32 %wa, %wb
  br i1 %c, label %more, label %join
more:
  %t = add i32 %s, %wb
  br label %join
join:
  %p = phi i32 [ %s, %entry ], [ %t, %more ]
  switch i32 %p, label %other [
    i32 2, label %two
    i32 300, label %two
  ]
two:
  ret i8 1
other:
  ret i8 0
}
