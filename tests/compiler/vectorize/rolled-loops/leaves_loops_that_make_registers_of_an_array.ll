; An array is registers once the counters of its loops are constants, also through clamps, selects and loops whose
; length depends on another counter.
; RUN: kiln-opt --passes=rolled-loops %s | FileCheck %s

; CHECK-NOT: llvm.loop

define float @triangle(ptr %x) {
entry:
  %a = alloca [16 x float]
  br label %outer
outer:
  %k = phi i64 [ 0, %entry ], [ %k.next, %outer.end ]
  %p = getelementptr float, ptr %x, i64 %k
  %v = load float, ptr %p
  br label %inner
inner:
  %j = phi i64 [ 0, %outer ], [ %j.next, %inner ]
  %q = getelementptr [16 x float], ptr %a, i64 0, i64 %j
  %w = load float, ptr %q
  %sum = fadd float %w, %v
  store float %sum, ptr %q
  %j.next = add i64 %j, 1
  %more = icmp ule i64 %j.next, %k
  br i1 %more, label %inner, label %outer.end
outer.end:
  %k.next = add i64 %k, 1
  %c = icmp ult i64 %k.next, 16
  br i1 %c, label %outer, label %done
done:
  ret float %sum
}

; A pointer that walks is an index once the loop is unrolled.
define float @walked(ptr %x) {
entry:
  %a = alloca [16 x float]
  %end = getelementptr [16 x float], ptr %a, i64 0, i64 16
  br label %loop
loop:
  %p = phi ptr [ %a, %entry ], [ %next, %loop ]
  %q = phi ptr [ %x, %entry ], [ %more, %loop ]
  %k = phi i64 [ 0, %entry ], [ %k.next, %loop ]
  %at = getelementptr [16 x float], ptr %a, i64 0, i64 %k
  %v = load float, ptr %at
  %w = load float, ptr %q
  %sum = fadd float %v, %w
  store float %sum, ptr %p
  %next = getelementptr float, ptr %p, i64 1
  %more = getelementptr float, ptr %q, i64 1
  %k.next = add i64 %k, 1
  %c = icmp ult i64 %k.next, 16
  br i1 %c, label %loop, label %done
done:
  ret float %sum
}

declare i64 @llvm.smax.i64(i64, i64)

; One array is indexed by data, and the loop is needed for the other.
define float @clamped(ptr %x, i64 %any) {
entry:
  %a = alloca [32 x float]
  %b = alloca [32 x float]
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %k.next, %loop ]
  %s = phi float [ 0.0, %entry ], [ %t, %loop ]
  %p = getelementptr float, ptr %x, i64 %k
  %v = load float, ptr %p
  %first = icmp eq i64 %k, 0
  %before = add i64 %k, -1
  %left = call i64 @llvm.smax.i64(i64 %before, i64 0)
  %place = select i1 %first, i64 31, i64 %left
  %q = getelementptr [32 x float], ptr %a, i64 0, i64 %place
  store float %v, ptr %q
  %r = getelementptr [32 x float], ptr %b, i64 0, i64 %any
  %w = load float, ptr %r
  %u = fadd float %s, %w
  %t = fadd float %u, %v
  store float %t, ptr %r
  %k.next = add i64 %k, 1
  %c = icmp ult i64 %k.next, 32
  br i1 %c, label %loop, label %done
done:
  ret float %t
}

; A counter that goes through both loops of a window, `v[k++] = x[..]`: behind the inner one it is the last iteration's.
define float @carried(ptr %x) {
entry:
  %a = alloca [9 x float]
  br label %rows
rows:
  %row = phi i64 [ 0, %entry ], [ %row.next, %rows.end ]
  %k = phi i64 [ 0, %entry ], [ %k.after, %rows.end ]
  br label %columns
columns:
  %column = phi i64 [ 0, %rows ], [ %column.next, %columns ]
  %j = phi i64 [ %k, %rows ], [ %j.next, %columns ]
  %at = add i64 %row, %column
  %p = getelementptr float, ptr %x, i64 %at
  %v = load float, ptr %p
  %q = getelementptr [9 x float], ptr %a, i64 0, i64 %j
  store float %v, ptr %q
  %j.next = add i64 %j, 1
  %column.next = add i64 %column, 1
  %c = icmp ult i64 %column.next, 3
  br i1 %c, label %columns, label %rows.end
rows.end:
  %k.after = phi i64 [ %j.next, %columns ]
  %row.next = add i64 %row, 1
  %d = icmp ult i64 %row.next, 3
  br i1 %d, label %rows, label %done
done:
  %last = load float, ptr %a
  ret float %last
}
