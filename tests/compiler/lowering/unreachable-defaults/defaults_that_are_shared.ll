; The block on the way is a case's, too, or another branch's: it stays for that one. A default that is unreachable itself
; is left as it is.
; RUN: kiln-opt --passes=unreachable-defaults %s | FileCheck %s

; CHECK-LABEL: define void @of_a_branch(
; CHECK: br i1 %c, label %way, label %choice
; CHECK: switch i32 %kind, label %[[NOWHERE:.*]] [
; CHECK: way:
; CHECK-NEXT: br label %never
; CHECK: [[NOWHERE]]:
; CHECK-NEXT: unreachable
define void @of_a_branch(ptr %x, i32 %kind, i1 %c) {
  br i1 %c, label %way, label %choice
choice:
  switch i32 %kind, label %way [ i32 0, label %zero ]
zero:
  ret void
way:
  br label %never
never:
  unreachable
}

; CHECK-LABEL: define void @of_a_case(
; CHECK: switch i32 %kind, label %[[NOWHERE:.*]] [
; CHECK-NEXT: i32 0, label %zero
; CHECK-NEXT: i32 1, label %way
; CHECK: way:
; CHECK-NEXT: br label %never
define void @of_a_case(ptr %x, i32 %kind) {
  switch i32 %kind, label %way [
    i32 0, label %zero
    i32 1, label %way
  ]
zero:
  ret void
way:
  %from = phi i32 [ 5, %0 ], [ 5, %0 ]
  br label %never
never:
  unreachable
}

; CHECK-LABEL: define void @itself(
; CHECK: switch i32 %kind, label %never [
define void @itself(ptr %x, i32 %kind) {
  switch i32 %kind, label %never [ i32 0, label %zero ]
zero:
  ret void
never:
  unreachable
}
