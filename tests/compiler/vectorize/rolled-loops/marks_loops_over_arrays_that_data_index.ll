; An array that one access reaches by an index from data stays in memory: unrolling a loop over it removes nothing.
; RUN: kiln-opt --passes=rolled-loops %s | FileCheck %s

; CHECK-LABEL: define i32 @histogram(
; CHECK: br i1 %c, label %count, label %sum, !llvm.loop [[COUNT:![0-9]+]]
; CHECK: br i1 %d, label %sum, label %done, !llvm.loop [[SUM:![0-9]+]]
define i32 @histogram(ptr %x) {
entry:
  %bins = alloca [16 x i32]
  br label %count
count:
  %k = phi i64 [ 0, %entry ], [ %next, %count ]
  %p = getelementptr i32, ptr %x, i64 %k
  %v = load i32, ptr %p
  %bin = and i32 %v, 15
  %o = zext i32 %bin to i64
  %q = getelementptr [16 x i32], ptr %bins, i64 0, i64 %o
  %n = load i32, ptr %q
  %m = add i32 %n, 1
  store i32 %m, ptr %q
  %next = add i64 %k, 1
  %c = icmp ult i64 %next, 32
  br i1 %c, label %count, label %sum
sum:
  %j = phi i64 [ 0, %count ], [ %after, %sum ]
  %s = phi i32 [ 0, %count ], [ %t, %sum ]
  %r = getelementptr [16 x i32], ptr %bins, i64 0, i64 %j
  %w = load i32, ptr %r
  %three = mul i32 %s, 3
  %t = add i32 %three, %w
  %after = add i64 %j, 1
  %d = icmp ult i64 %after, 16
  br i1 %d, label %sum, label %done
done:
  ret i32 %t
}

; The inner loop ends where data say so. The outer one has a known length.
; CHECK-LABEL: define void @insertion_sort(
; CHECK: br i1 %more, label %shift, label %next
; CHECK-NOT: llvm.loop
; CHECK: br i1 %c, label %insert, label %done, !llvm.loop
define void @insertion_sort(ptr %x) {
entry:
  %a = alloca [16 x i32]
  br label %insert
insert:
  %k = phi i64 [ 0, %entry ], [ %k.next, %next ]
  %p = getelementptr i32, ptr %x, i64 %k
  %v = load i32, ptr %p
  br label %shift
shift:
  %i = phi i64 [ %k, %insert ], [ %below, %shift ]
  %below = add i64 %i, -1
  %from = getelementptr [16 x i32], ptr %a, i64 0, i64 %below
  %w = load i32, ptr %from
  %to = getelementptr [16 x i32], ptr %a, i64 0, i64 %i
  store i32 %w, ptr %to
  %more = icmp ugt i32 %w, %v
  br i1 %more, label %shift, label %next
next:
  %place = getelementptr [16 x i32], ptr %a, i64 0, i64 %below
  store i32 %v, ptr %place
  %k.next = add i64 %k, 1
  %c = icmp ult i64 %k.next, 16
  br i1 %c, label %insert, label %done
done:
  ret void
}

; CHECK-DAG: [[COUNT]] = distinct !{[[COUNT]], [[DISABLE:![0-9]+]], [[KEPT:![0-9]+]]}
; CHECK-DAG: [[SUM]] = distinct !{[[SUM]], [[DISABLE]], [[KEPT]]}
; CHECK-DAG: [[DISABLE]] = !{!"llvm.loop.unroll.disable"}
; CHECK-DAG: [[KEPT]] = !{!"kiln.loop.rolled"}
