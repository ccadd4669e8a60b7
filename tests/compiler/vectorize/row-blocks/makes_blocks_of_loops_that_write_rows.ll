; Each lane walks a row of its own and writes one. What 16 iterations load goes to a tile before them, and what they store
; is in a tile until they are through. A vote asks whether all lanes' accesses are in bounds; elements go one by one
; otherwise, and in a last block.
; RUN: kiln-opt --passes=row-blocks %s | FileCheck %s

@__kiln_zeros.64 = external constant [64 x i8]
@__kiln_sink = external global [64 x i8]

declare i32 @__kiln_lane()

; CHECK-LABEL: define void @decay(
; CHECK-DAG: alloca [16 x float]
; CHECK-DAG: alloca [16 x float]
; CHECK: row.block:
; CHECK: %row.done = phi i64 [ 0, %entry ], [ %{{.+}}, %row.next ]
; CHECK: call i64 @llvm.umin.i64(i64 %row.left, i64 15)
; CHECK: icmp uge i64 %row.left, 15
; CHECK: icmp ult i64 %{{.+}}, %limit
; CHECK: [[VOTES:%.+]] = call i32 @__kiln_lanes_vote1(
; CHECK: [[NONE:%.+]] = icmp eq i32 [[VOTES]], 0
; CHECK: %row.is_whole = and i1 %{{.+}}, [[NONE]]
; CHECK: br i1 %row.is_whole, label %row.whole, label %row.rest, !prof
; CHECK: row.whole:
; CHECK-NOT: select
; CHECK-COUNT-16: load float, ptr %{{.+}}, !invariant.load !{{[0-9]+}}, !kiln.row-block
; CHECK-COUNT-16: store float %{{.+}}, ptr %{{.+}}, align 4, !kiln.row-block
; CHECK: row.rest:
; CHECK: select i1 %{{.+}}, ptr %{{.+}}, ptr @__kiln_zeros.64
; CHECK: loop:
; CHECK: %row.k = phi i64
; CHECK: load float, ptr %{{.+}}, align 4, !kiln.row-block
; CHECK: store float %{{.+}}, ptr %{{.+}}, align 4, !kiln.row-block
; CHECK: row.finish:
; CHECK: br i1 %row.is_whole, label %[[STORES:.+]], label %
; CHECK: [[STORES]]:
; CHECK-COUNT-16: load float, ptr %{{.+}}, align 4, !kiln.row-block
; CHECK-COUNT-16: store float %{{.+}}, ptr %{{.+}}, align 4, !kiln.row-block
; CHECK: select i1 %{{.+}}, ptr %{{.+}}, ptr @__kiln_sink
; CHECK: ret void
define void @decay(ptr %args, i32 %n, i64 %limit) {
entry:
  %x = load ptr, ptr %args, !invariant.load !0
  %after = getelementptr ptr, ptr %args, i64 1
  %y = load ptr, ptr %after, !invariant.load !0
  %xi = ptrtoint ptr %x to i64
  %yi = ptrtoint ptr %y to i64
  %lane = call i32 @__kiln_lane()
  %first = mul i32 %lane, 100
  %row = zext i32 %first to i64
  %in = getelementptr float, ptr %x, i64 %row
  %out = getelementptr float, ptr %y, i64 %row
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %s = phi float [ 0.0, %entry ], [ %new, %loop ]
  %o = zext i32 %i to i64
  %p = getelementptr float, ptr %in, i64 %o
  %pi = ptrtoint ptr %p to i64
  %po = sub i64 %pi, %xi
  %pg = icmp ult i64 %po, %limit
  %ps = select i1 %pg, ptr %p, ptr @__kiln_zeros.64
  %v = load float, ptr %ps, align 4, !invariant.load !0
  %half = fmul float %s, 0.5
  %new = fadd float %half, %v
  %q = getelementptr float, ptr %out, i64 %o
  %qi = ptrtoint ptr %q to i64
  %qo = sub i64 %qi, %yi
  %qg = icmp ult i64 %qo, %limit
  %qs = select i1 %qg, ptr %q, ptr @__kiln_sink
  store float %new, ptr %qs, align 4
  %next = add nuw nsw i32 %i, 1
  %c = icmp ult i32 %next, %n
  br i1 %c, label %loop, label %done
done:
  ret void
}

; In place: a load comes before the store to its own element.
; CHECK-LABEL: define void @in_place(
; CHECK: row.block:
; CHECK: br i1 %row.is_whole
define void @in_place(ptr %x, i64 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  %first = mul i32 %lane, 100
  %row = zext i32 %first to i64
  %in = getelementptr i32, ptr %x, i64 %row
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi i32 [ 0, %entry ], [ %new, %loop ]
  %p = getelementptr i32, ptr %in, i64 %i
  %v = load i32, ptr %p, align 4
  %new = add i32 %s, %v
  store i32 %new, ptr %p, align 4
  %next = add nuw nsw i64 %i, 1
  %c = icmp ult i64 %next, %n
  br i1 %c, label %loop, label %done
done:
  ret void
}

; Backwards, and the store is behind the load: where it stores, an earlier iteration has loaded.
; CHECK-LABEL: define void @behind(
; CHECK: row.block:
define void @behind(ptr %x, i64 %n) {
entry:
  %lane = call i32 @__kiln_lane()
  %first = mul i32 %lane, 100
  %row = zext i32 %first to i64
  %in = getelementptr i32, ptr %x, i64 %row
  br label %loop
loop:
  %i = phi i64 [ %n, %entry ], [ %next, %loop ]
  %p = getelementptr i32, ptr %in, i64 %i
  %v = load i32, ptr %p, align 4
  %q = getelementptr i32, ptr %p, i64 1
  store i32 %v, ptr %q, align 4
  %next = add nsw i64 %i, -1
  %c = icmp sgt i64 %next, 0
  br i1 %c, label %loop, label %done
done:
  ret void
}

!0 = !{}
