; A default that does something, that returns, or that branches, stays, and so do blocks that lead to nowhere by a branch.
; RUN: kiln-opt --passes=unreachable-defaults %s | FileCheck %s

; CHECK-LABEL: define void @returns(
; CHECK: switch i32 %kind, label %default [
define void @returns(ptr %x, i32 %kind) {
  switch i32 %kind, label %default [ i32 0, label %zero ]
zero:
  store i32 1, ptr %x
  br label %default
default:
  ret void
}

; CHECK-LABEL: define void @stores_before(
; CHECK: switch i32 %kind, label %default [
; CHECK: default:
; CHECK-NEXT: store i32 2, ptr %x
define void @stores_before(ptr %x, i32 %kind) {
  switch i32 %kind, label %default [ i32 0, label %zero ]
zero:
  ret void
default:
  store i32 2, ptr %x
  br label %never
never:
  unreachable
}

; CHECK-LABEL: define void @branches(
; CHECK: switch i32 %kind, label %default [
; CHECK: br i1 %c, label %never, label %zero
define void @branches(ptr %x, i32 %kind, i1 %c) {
  switch i32 %kind, label %default [ i32 0, label %zero ]
zero:
  ret void
default:
  br i1 %c, label %never, label %zero
never:
  unreachable
}

; CHECK-LABEL: define void @for_ever(
; CHECK: switch i32 %kind, label %default [
define void @for_ever(ptr %x, i32 %kind) {
  switch i32 %kind, label %default [ i32 0, label %zero ]
zero:
  ret void
default:
  br label %default
}
