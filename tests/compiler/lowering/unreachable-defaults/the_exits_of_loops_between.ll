; The default of an exhaustive switch leaves two loops on the way to what cannot be reached, each by an exit of its own.
; The switch gets a default of its own, and the exits, which nothing leads to any more, go. Of two switches each does.
; RUN: kiln-opt --passes=unreachable-defaults %s | FileCheck %s
; RUN: kiln-opt --passes=unreachable-defaults,lower-switch %s | FileCheck --check-prefix=LOWERED %s

; CHECK-LABEL: define void @in_two_loops(
; CHECK: switch i32 %kind, label %[[NOWHERE:.*]] [
; CHECK: switch i32 %other, label %[[NOWHERE]] [
; CHECK-NOT: {{^}}inner_exit:
; CHECK-NOT: {{^}}outer_exit:
; CHECK: [[NOWHERE]]:
; CHECK-NEXT: unreachable
; LOWERED-LABEL: define void @in_two_loops(
; LOWERED-NOT: unreachable
; LOWERED: }
define void @in_two_loops(ptr %x, i32 %n) {
entry:
  br label %outer
outer:
  br label %inner
inner:
  %k = phi i32 [ 0, %outer ], [ %next, %latch ]
  %loaded = load i32, ptr %x
  %kind = and i32 %loaded, 2
  switch i32 %kind, label %inner_exit [
    i32 0, label %zero
    i32 2, label %two
  ]
zero:
  store i32 1, ptr %x
  br label %latch
two:
  %other = and i32 %loaded, 4
  switch i32 %other, label %inner_exit [
    i32 0, label %latch
    i32 4, label %four
  ]
four:
  store i32 3, ptr %x
  br label %latch
latch:
  %next = add i32 %k, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %inner, label %outer_latch
inner_exit:
  %value = phi i32 [ %kind, %inner ], [ %other, %two ]
  br label %outer_exit
outer_latch:
  %again = load i1, ptr %x
  br i1 %again, label %outer, label %end
outer_exit:
  br label %never
never:
  unreachable
end:
  ret void
}
